//! Random choices that a seed repeats (splitmix64).

/// A stream of choices.
#[derive(Clone, Debug)]
pub struct Dice(u64);

/// The seed of this run: `FORGE_SEED`, or one of the moment. Whoever uses it prints it.
pub fn seed() -> u64 {
    match std::env::var("FORGE_SEED").map(|text| text.parse()) {
        Ok(Ok(seed)) => seed,
        Ok(Err(e)) => panic!("FORGE_SEED: {e}"),
        Err(_) => {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
            now.as_nanos() as u64 % 1_000_000_000
        }
    }
}

/// How often: the variable's number, or `default`.
pub fn times(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap_or_else(|e| panic!("{variable}: {e}")))
}

impl Dice {
    /// The choices of one seed.
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.any() % bound.max(1)
    }

    /// True once in `n`.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of these.
    pub fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }

    /// At most `most` bytes: any, or those that parsers trip over.
    pub fn bytes(&mut self, most: u64) -> Vec<u8> {
        const TRICKY: &[u8] = b"\0\t\n\r \"'\\-=/:@#$%&[]{},.\x1b\x7f\x80\xff";
        let length = self.below(most + 1);
        (0..length)
            .map(|_| match self.below(4) {
                0 => self.any() as u8,
                1 => *self.one_of(TRICKY),
                _ => *self.one_of(b"abcXYZ0123456789"),
            })
            .collect()
    }
}
