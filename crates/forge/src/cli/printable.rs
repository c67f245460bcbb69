//! Text that somebody else wrote, on its way to a terminal: nothing in it may steer one.

/// On one line: whatever is no visible character is escaped.
pub fn line(text: &str) -> String {
    escaped(text, |_| false)
}

/// As lines: line breaks and tabs stay.
pub fn text(text: &str) -> String {
    escaped(text, |c| matches!(c, '\n' | '\t'))
}

/// A JSON document: it says the same, and holds no such character as it is.
pub fn json(document: &str) -> String {
    let mut out = String::with_capacity(document.len());
    for c in document.chars() {
        // All of them have one unit of UTF-16, and none stands outside a string.
        if c != '\n' && steers(c) { out.push_str(&format!("\\u{:04x}", u32::from(c))) } else { out.push(c) }
    }
    out
}

fn escaped(text: &str, stays: fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if stays(c) || !steers(c) { out.push(c) } else { out.extend(c.escape_unicode()) }
    }
    out
}

/// Control characters, C1 and the line separators of Unicode, and the marks that turn text around.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_comes_through() {
        assert_eq!(line("a\tb\n\u{1b}[2J\u{9b}\u{202e}é"), "a\\u{9}b\\u{a}\\u{1b}[2J\\u{9b}\\u{202e}é");
        assert_eq!(json("{\"a\":\"\u{9b}\u{202e}é\"}\n"), "{\"a\":\"\\u009b\\u202eé\"}\n");
        assert_eq!(text("a\tb\n\r\u{7f}"), "a\tb\n\\u{d}\\u{7f}");
    }
}
