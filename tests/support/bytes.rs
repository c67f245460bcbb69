//! Bytes as one line of text and back: the escapes of `u8::escape_ascii`, which scripts and records share.

/// Bytes as printable ASCII on one line.
pub fn escape(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// The bytes an escaped text stands for; an unknown escape stands for itself.
pub fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'\\' {
            bytes.push(first);
            continue;
        }
        let Some((&kind, tail)) = rest.split_first() else {
            bytes.push(first);
            break;
        };
        rest = tail;
        match kind {
            b'n' => bytes.push(b'\n'),
            b't' => bytes.push(b'\t'),
            b'r' => bytes.push(b'\r'),
            b'0' => bytes.push(0),
            b'x' => match rest.get(..2).and_then(|hex| std::str::from_utf8(hex).ok()) {
                Some(hex) => {
                    bytes.push(u8::from_str_radix(hex, 16).unwrap_or(b'?'));
                    rest = &rest[2..];
                }
                None => bytes.push(b'x'),
            },
            other => bytes.push(other),
        }
    }
    bytes
}
