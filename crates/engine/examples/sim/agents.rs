//! What agents ask for, and when.

use engine::decide::resource::Resource;

use super::forge::Request;

/// A pseudo-random sequence (xorshift): the same seed is the same run.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// 0 up to, but not, `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    /// A waiting time of random arrivals with this mean.
    pub fn arrival_ms(&mut self, mean_ms: u64) -> u64 {
        let share = (self.below(1_000_000) + 1) as f64 / 1_000_000.0;
        (-share.ln() * mean_ms as f64) as u64 + 1
    }
}

/// One call of gh: what its column names, what else it spends, and the requests behind it.
#[derive(Clone, Debug)]
pub struct Call {
    pub resource: Resource,
    pub extra: &'static [(Resource, u8)],
    pub requests: Vec<Request>,
}

const GRAPHQL: &[(Resource, u8)] = &[(Resource::Graphql, 1)];

/// The mix: mostly reads of issues, some REST, some searches, some writes (`GH-SURFACE` counts).
pub fn call(dice: &mut Dice) -> Call {
    let read = |resource| Request { resource, points: 1, creates: false };
    let write = |creates| Request { resource: Resource::Graphql, points: 5, creates };
    let graphql = read(Resource::Graphql);
    let of = |resource, requests| Call { resource, extra: &[], requests };
    match dice.below(100) {
        0..45 => of(Resource::Graphql, vec![graphql]),
        45..60 => of(Resource::Graphql, vec![graphql, graphql]),
        60..78 => of(Resource::Core, vec![read(Resource::Core); 1 + dice.below(3) as usize]),
        78..84 => Call { extra: GRAPHQL, ..of(Resource::Search, vec![graphql, read(Resource::Search)]) },
        84..94 => of(Resource::Graphql, vec![graphql, graphql, write(false)]),
        _ => of(Resource::Graphql, vec![graphql, write(true)]),
    }
}
