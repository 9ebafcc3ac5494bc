//! The user's time zone, in which `yesterday` is a day.

use std::io::Read;
use std::path::{Path, PathBuf};

use memgrove::clock::{TimeZone, Timestamp};

/// The file that describes the machine's zone.
const LOCAL: &str = "/etc/localtime";
/// Where zones are described by their names, unless `TZDIR` says otherwise.
const FOLDERS: [&str; 2] = ["/usr/share/zoneinfo", "/etc/zoneinfo"];
/// A zone is described in a few thousand bytes.
const ZONE_BYTES_MAX: u64 = 1 << 20;

/// What the environment says of the zone.
#[derive(Debug, Clone, Default)]
pub(crate) struct ZoneVariables {
    /// `TZ`.
    pub(crate) name: Option<String>,
    /// `TZDIR`.
    pub(crate) folder: Option<PathBuf>,
}

impl ZoneVariables {
    /// The zone that `TZ` names, else the machine's; UTC if it is unknown, as for other programs that use the
    /// C library. Reads one file, while the library of zones would look through all of them.
    pub(crate) fn zone(&self) -> TimeZone {
        let zone = match self.name.as_deref().map(|name| name.strip_prefix(':').unwrap_or(name)) {
            None => described(Path::new(LOCAL)),
            Some(name) => self.named(name).or_else(|| TimeZone::posix(name).ok()),
        };
        zone.unwrap_or(TimeZone::UTC)
    }

    fn named(&self, name: &str) -> Option<TimeZone> {
        let folders = self.folder.as_deref().into_iter().chain(FOLDERS.map(Path::new));
        folders.into_iter().find_map(|folder| described(&folder.join(name)))
    }
}

/// A moment as the user's clock showed it.
pub(crate) fn clock(zone: &TimeZone, moment: Timestamp) -> String {
    format!("{:.0}", zone.to_datetime(moment))
}

/// As [`clock`], for a moment in writing; what is no moment stays as it is.
pub(crate) fn clock_of(zone: &TimeZone, written: &str) -> String {
    written.parse().map_or_else(|_| written.to_owned(), |moment| clock(zone, moment))
}

fn described(path: &Path) -> Option<TimeZone> {
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(ZONE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    TimeZone::tzif(&path.to_string_lossy(), &bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_known_by_name_and_by_rule_and_are_utc_otherwise() {
        let summer: Timestamp = "2026-07-01T12:00:00Z".parse().expect("a moment");
        let hours = |name: &str| {
            let zone = ZoneVariables { name: Some(name.to_owned()), folder: None }.zone();
            zone.to_offset(summer).seconds() / 3600
        };
        let told =
            ["EST5EDT,M3.2.0,M11.1.0", ":UTC-3", "<+0330>-3", "", "Nowhere/At_All", "../../far/canary"];
        assert_eq!(told.map(hours), [-4, 3, 3, 0, 0, 0]);
    }
}
