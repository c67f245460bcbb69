//! The states in which a disk may be left.

use std::collections::HashSet;
use std::rc::Rc;

use super::disk::{Disk, Inode, Node, Tree};
use crate::support::dice::Dice;

/// Up to so many changes every subset of them is a state; past it, those that matter most and some at random.
const ALL_SUBSETS: usize = 8;
const AT_RANDOM: usize = 64;
const MOST_MIXES: usize = 36;

impl Disk {
    /// Every state in which a power cut may leave it now.
    pub fn cuts(&self, dice: &mut Dice) -> HashSet<Tree> {
        let mut pending: Vec<(usize, Option<usize>)> = Vec::new();
        for inode in &self.inodes {
            if let Inode::Folder { pending: changes, .. } = inode {
                pending.extend(changes.iter().map(|change| (change.at, change.needs)));
            }
        }
        pending.sort_unstable();
        let mut trees = HashSet::new();
        for chosen in subsets(pending.len(), ALL_SUBSETS, dice) {
            let kept: HashSet<usize> = pending
                .iter()
                .zip(&chosen)
                .filter(|(_, is_there)| **is_there)
                .map(|((at, _), _)| *at)
                .collect();
            let is_legal = pending
                .iter()
                .all(|(at, needs)| !kept.contains(at) || needs.is_none_or(|first| kept.contains(&first)));
            if is_legal {
                self.with(&kept, dice, &mut trees);
            }
        }
        trees
    }

    /// The states with exactly these changes of folders.
    fn with(&self, kept: &HashSet<usize>, dice: &mut Dice, trees: &mut HashSet<Tree>) {
        let (mut tree, mut unsure) = (Tree::new(), Vec::new());
        self.walk(0, "", kept, &mut tree, &mut unsure);
        let total: usize = unsure.iter().map(|(_, forms)| forms.len()).product();
        for n in 0..total.min(MOST_MIXES) {
            // Past the bound, every file's forms come at random.
            let mut rest = if total <= MOST_MIXES { n } else { dice.any() as usize };
            for (path, forms) in &unsure {
                tree.insert(path.clone(), Node::File(forms[rest % forms.len()].clone()));
                rest /= forms.len();
            }
            trees.insert(tree.clone());
        }
    }

    fn walk(
        &self,
        at: usize,
        path: &str,
        kept: &HashSet<usize>,
        tree: &mut Tree,
        unsure: &mut Vec<(String, Vec<Rc<[u8]>>)>,
    ) {
        match &self.inodes[at] {
            Inode::File { synced, now } => {
                let forms = forms(synced, now);
                tree.insert(path.into(), Node::File(forms[0].clone()));
                if forms.len() > 1 {
                    unsure.push((path.into(), forms));
                }
            }
            Inode::Folder { kept: certain, pending, .. } => {
                if !path.is_empty() {
                    tree.insert(path.into(), Node::Folder);
                }
                let mut names = certain.clone();
                for change in pending.iter().filter(|change| kept.contains(&change.at)) {
                    match change.to {
                        Some(inode) => drop(names.insert(change.name.clone(), inode)),
                        None => drop(names.remove(&change.name)),
                    }
                }
                for (name, inode) in names {
                    let below = if path.is_empty() { name } else { format!("{path}/{name}") };
                    self.walk(inode, &below, kept, tree, unsure);
                }
            }
        }
    }
}

/// What a file may hold after a cut: all of the new bytes first.
fn forms(synced: &[u8], now: &[u8]) -> Vec<Rc<[u8]>> {
    let mut forms: Vec<Rc<[u8]>> = vec![now.into()];
    if synced == now {
        return forms;
    }
    let is_longer = now.starts_with(synced);
    let same =
        if is_longer { synced.len() } else { synced.iter().zip(now).take_while(|(a, b)| a == b).count() };
    let half = same + (now.len() - same) / 2;
    let zeros = |from: usize, to: usize| {
        let mut bytes = now.to_vec();
        bytes[from..to].fill(0);
        bytes
    };
    let torn = [
        synced.to_vec(),
        now[..half].to_vec(),
        zeros(same, now.len()),
        zeros(same, half),
        zeros(half, now.len()),
    ];
    for bytes in torn {
        if !forms.iter().any(|form| **form == *bytes) {
            forms.push(bytes.into());
        }
    }
    forms
}

/// Which of `count` changes are there: every subset, or every prefix, every single one missing or alone, and
/// some at random.
fn subsets(count: usize, all_up_to: usize, dice: &mut Dice) -> Vec<Vec<bool>> {
    if count <= all_up_to {
        return (0..1_usize << count).map(|bits| (0..count).map(|n| bits >> n & 1 == 1).collect()).collect();
    }
    let mut subsets: Vec<Vec<bool>> = (0..=count).map(|end| (0..count).map(|n| n < end).collect()).collect();
    for one in 0..count {
        subsets.push((0..count).map(|n| n != one).collect());
        subsets.push((0..count).map(|n| n == one).collect());
    }
    subsets.extend((0..AT_RANDOM).map(|_| (0..count).map(|_| dice.once_in(2)).collect()));
    subsets
}
