//! How three texts become one, line by line: what only one side changed is taken from that side.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// What came of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreeWay {
    /// The merged text, with git's markers where both sides changed the same lines differently.
    pub text: String,
    /// How many such places there are.
    pub clashes: usize,
}

/// A part of the base and what a side has in its place.
struct Hunk {
    base: Range<usize>,
    side: Range<usize>,
}

/// Merges two texts that both come from `base`.
///
/// ```
/// use memgrove::text::merge::three_way;
///
/// let merged = three_way("a\nb\nc\n", "a\nB\nc\n", "a\nb\nc\nd\n");
/// assert_eq!((&*merged.text, merged.clashes), ("a\nB\nc\nd\n", 0));
/// ```
pub fn three_way(base: &str, ours: &str, theirs: &str) -> ThreeWay {
    let lines = |text: &str| -> Vec<String> { text.split_inclusive('\n').map(str::to_owned).collect() };
    let (base, ours, theirs) = (lines(base), lines(ours), lines(theirs));
    let sides = [hunks(&base, &ours), hunks(&base, &theirs)];
    let mut merged = ThreeWay { text: String::new(), clashes: 0 };
    let (mut at, mut next) = (0, [0, 0]);
    loop {
        let starts = [0, 1].map(|side| sides[side].get(next[side]).map(|hunk| hunk.base.start));
        let Some(start) = starts.into_iter().flatten().min() else { break };
        merged.text.extend(base[at..start].iter().map(String::as_str));
        // Changes that touch each other are settled together.
        let (mut end, from) = (start, next);
        loop {
            let grown = [0, 1]
                .into_iter()
                .find(|side| sides[*side].get(next[*side]).is_some_and(|hunk| hunk.base.start <= end));
            let Some(side) = grown else { break };
            end = end.max(sides[side][next[side]].base.end);
            next[side] += 1;
        }
        let has = |side: usize, text: &[String]| {
            side_of(&sides[side][from[side]..next[side]], &base, text, start..end)
        };
        let (mine, yours) = (has(0, &ours), has(1, &theirs));
        settle(&mut merged, &base[start..end].concat(), mine, yours);
        at = end;
    }
    merged.text.extend(base[at..].iter().map(String::as_str));
    merged
}

/// What a side has in place of a part of the base.
fn side_of(hunks: &[Hunk], base: &[String], side: &[String], part: Range<usize>) -> String {
    let (mut text, mut at) = (String::new(), part.start);
    for hunk in hunks {
        text.push_str(&base[at..hunk.base.start].concat());
        text.push_str(&side[hunk.side.clone()].concat());
        at = hunk.base.end;
    }
    text + &base[at..part.end].concat()
}

fn settle(merged: &mut ThreeWay, base: &str, mine: String, yours: String) {
    if mine == yours || yours == base {
        merged.text.push_str(&mine);
    } else if mine == base {
        merged.text.push_str(&yours);
    } else {
        let ended = |text: &str| if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        merged.clashes += 1;
        merged.text.push_str(&format!(
            "<<<<<<< ours\n{mine}{}=======\n{yours}{}>>>>>>> theirs\n",
            ended(&mine),
            ended(&yours)
        ));
    }
}

fn hunks(base: &[String], side: &[String]) -> Vec<Hunk> {
    let ops = capture_diff_slices(Algorithm::Myers, base, side);
    let changed = ops.into_iter().filter(|op| !matches!(op, DiffOp::Equal { .. }));
    changed.map(|op| Hunk { base: op.old_range(), side: op.new_range() }).collect()
}

/// Returns the lines, from 1, on which a text has git's conflict markers; none unless the markers are
/// complete.
pub fn markers(text: &str) -> Vec<usize> {
    let (mut found, mut open) = (Vec::new(), None);
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("<<<<<<< ") {
            open = Some((index + 1, false));
        } else if line == "=======" {
            open = open.map(|(start, _)| (start, true));
        } else if line.starts_with(">>>>>>> ")
            && let Some((start, true)) = open.take()
        {
            found.push(start);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(base: &str, ours: &str, theirs: &str, wanted: &str, clashes: usize) {
        let unfold = |text: &str| text.replace(' ', "\n") + "\n";
        let merged = three_way(&unfold(base), &unfold(ours), &unfold(theirs));
        assert_eq!((merged.text, merged.clashes), (unfold(wanted), clashes));
        if clashes == 0 {
            let turned = three_way(&unfold(base), &unfold(theirs), &unfold(ours));
            assert_eq!(turned.text, unfold(wanted), "the sides may be exchanged");
        }
    }

    #[test]
    fn what_one_side_changed_is_taken() {
        check("a b c", "a b c", "a b c", "a b c", 0);
        check("a b c", "a x c", "a b c", "a x c", 0);
        check("a b c d e", "x b c d e", "a b c d y", "x b c d y", 0);
        check("a b c d e", "a c d e", "a b c d e f", "a c d e f", 0);
        check("a b c", "a x c", "a x c", "a x c", 0);
        check("a b c d", "a b", "a b c d", "a b", 0);
    }

    #[test]
    fn what_both_changed_differently_is_a_clash_and_nothing_is_lost() {
        let merged = three_way("a\nb\nc\n", "a\nx\nc\n", "a\ny\nc\n");
        assert_eq!(merged.text, "a\n<<<<<<< ours\nx\n=======\ny\n>>>>>>> theirs\nc\n");
        assert_eq!((merged.clashes, markers(&merged.text)), (1, vec![2]));
        let ends = three_way("a", "x", "y");
        assert_eq!(ends.text, "<<<<<<< ours\nx\n=======\ny\n>>>>>>> theirs\n");
        assert_eq!(markers("=======\n>>>>>>> x\n<<<<<<< y\n"), Vec::<usize>::new());
    }
}
