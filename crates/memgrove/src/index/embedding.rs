//! What a text means, as 128 small numbers: the mean of its word pieces in a static model.
//!
//! The model is shipped inside the program, so that the same text has the same vector on every
//! machine, without a network. The arithmetic is on integers up to the final scaling.

use super::wordpiece;

/// The numbers of a vector.
pub(crate) const DIMENSIONS: usize = 128;
const ROWS: &[u8] = include_bytes!("../../assets/potion-base-4M-int8/embeddings.i8");
/// The most word pieces of a text that count.
const PIECES_MAX: usize = 512;

/// What a text means: a direction, scaled to signed bytes.
pub(crate) type Vector = [i8; DIMENSIONS];

/// Turns text into vectors. The one that is shipped is [`Potion`]; others can take its place.
pub trait Embedder: Send + Sync {
    /// A name that changes whenever vectors do: an index made with another one is made anew.
    fn name(&self) -> &str;

    /// The vector of a text, given as words with weights; zeros where it has no meaning.
    fn embed(&self, words: &[(&str, f32)]) -> [i8; 128];
}

/// The model `potion-base-4M` of MinishLab, with eight bits for each number.
#[derive(Debug, Clone, Copy, Default)]
pub struct Potion;

impl Embedder for Potion {
    fn name(&self) -> &str {
        "potion-base-4M-int8"
    }

    fn embed(&self, words: &[(&str, f32)]) -> [i8; 128] {
        let mut sum = [0f32; DIMENSIONS];
        for (text, weight) in words {
            let mut part = [0i32; DIMENSIONS];
            for id in wordpiece::ids(text).into_iter().take(PIECES_MAX) {
                let row = &ROWS[id as usize * DIMENSIONS..][..DIMENSIONS];
                for (part, value) in part.iter_mut().zip(row) {
                    *part += i32::from(*value as i8);
                }
            }
            for (sum, part) in sum.iter_mut().zip(part) {
                *sum += weight * part as f32;
            }
        }
        scaled(&sum)
    }
}

/// A direction as signed bytes, of the same length for every text.
fn scaled(sum: &[f32; DIMENSIONS]) -> Vector {
    // Summed in order, so that every machine rounds alike.
    let squares: f64 = sum.iter().map(|value| f64::from(*value) * f64::from(*value)).sum();
    let mut vector = [0; DIMENSIONS];
    if squares > 0.0 {
        // Most numbers of a unit vector are near 1/sqrt(128); scaled like this, they make use of eight
        // bits.
        let scale = STRETCH / squares.sqrt();
        for (to, value) in vector.iter_mut().zip(sum) {
            *to = (f64::from(*value) * scale).round().clamp(-127.0, 127.0) as i8;
        }
    }
    vector
}

/// The length of every vector.
const STRETCH: f64 = 320.0;

/// How alike two vectors are: 1 for the same direction.
fn likeness(dot: i32) -> f32 {
    dot as f32 / (STRETCH * STRETCH) as f32
}

/// Returns how alike a vector is to every row of these blocks, each of which has room for `rows` rows. The
/// sums are of integers, so the result is the same on every machine.
pub(crate) fn likenesses(vector: &Vector, blocks: &[impl AsRef<[u8]>], rows: usize) -> Vec<f32> {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        // SAFETY: the processor has just reported these instructions. Every search compares every vector,
        // and the baseline instructions take two to five times as long.
        #[allow(unsafe_code)]
        if has!("avx512f") && has!("avx512bw") && has!("avx512vl") {
            return unsafe { widest(vector, blocks, rows) };
        }
        // SAFETY: as above.
        #[allow(unsafe_code)]
        if has!("avx2") {
            return unsafe { wide(vector, blocks, rows) };
        }
    }
    plain(vector, blocks, rows)
}

/// The plain loop, for the widest registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn widest(vector: &Vector, blocks: &[impl AsRef<[u8]>], rows: usize) -> Vec<f32> {
    plain(vector, blocks, rows)
}

/// The plain loop, for wide registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn wide(vector: &Vector, blocks: &[impl AsRef<[u8]>], rows: usize) -> Vec<f32> {
    plain(vector, blocks, rows)
}

#[inline(always)]
fn plain(vector: &Vector, blocks: &[impl AsRef<[u8]>], rows: usize) -> Vec<f32> {
    let mut found = vec![0.0; blocks.len() * rows];
    for (block, found) in blocks.iter().zip(found.chunks_exact_mut(rows)) {
        let (rows, _) = block.as_ref().as_chunks::<DIMENSIONS>();
        for (row, found) in rows.iter().zip(found) {
            *found = likeness(dot(vector, row));
        }
    }
    found
}

/// The product of two vectors, in a form that compilers turn into SIMD.
#[inline(always)]
fn dot(a: &Vector, b: &[u8; DIMENSIONS]) -> i32 {
    let mut sum = 0i32;
    for at in 0..DIMENSIONS {
        sum += i32::from(a[at]) * i32::from(b[at] as i8);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(a: &str, b: &str) -> f32 {
        let [a, b] = [a, b].map(|text| Potion.embed(&[(text, 1.0)]));
        likenesses(&a, &[b.map(|value| value as u8)], 1)[0]
    }

    #[test]
    fn every_processor_finds_the_same() {
        let texts = ["green tea", "a puppy howled", "", "the tax report of last year"];
        let rows: Vec<[u8; DIMENSIONS]> =
            texts.iter().map(|text| Potion.embed(&[(text, 1.0)]).map(|value| value as u8)).collect();
        let query = Potion.embed(&[("a dog drinks tea", 1.0)]);
        assert_eq!(likenesses(&query, &rows, 1), plain(&query, &rows, 1));
    }

    #[test]
    fn meaning_is_nearer_than_spelling() {
        assert!((like("a cat sat", "a cat sat") - 1.0).abs() < 0.02);
        assert!(like("the dog barked", "a puppy howled") > like("the dog barked", "the tax report"));
        assert_eq!(like("", "anything"), 0.0);
    }
}
