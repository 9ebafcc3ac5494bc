//! Where new ids come from: handed in, as the clock is, so that tests can repeat them.

/// A source of ids.
pub trait Ids: Send + Sync {
    /// Sixteen random bytes.
    fn random(&self) -> [u8; 16];

    /// A fresh UUID of version 4.
    fn uuid(&self) -> String {
        let mut random = self.random();
        random[6] = random[6] & 0x0f | 0x40;
        random[8] = random[8] & 0x3f | 0x80;
        let hex: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
    }

    /// Whether others give ids where nobody here sees it, as on another branch of a repository: then no
    /// number is known to be free.
    fn branches(&self) -> bool {
        false
    }
}

/// The machine's randomness, for programs to hand in.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemIds;

impl Ids for SystemIds {
    fn random(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the system has randomness");
        bytes
    }
}
