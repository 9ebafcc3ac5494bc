//! Which note each imported file goes to, and how links between the files are kept alive: they lead to
//! where the content is now, and show what they showed.

use std::collections::{BTreeSet, HashMap};

use super::draft::Draft;
use super::import::{DeadLink, Structure, Taken};
use super::page::{Piece, Role};
use super::paths::{is_linkable, resolved};
use super::relink::{is_named, rewritten};
use crate::agent::rules::{slug, title_of};
use crate::error::Result;
use crate::text::blocks::BlockKind;
use crate::text::links::{WikiLink, links_in};

/// Where an imported file goes.
#[derive(Debug, Clone, Default)]
pub(super) struct Home {
    /// The note.
    pub(super) path: String,
    /// The heading that its content is under, unless the note is all its own.
    pub(super) heading: Option<String>,
}

/// Decides for each file into which note it goes, and under which heading. Front matter becomes content
/// where it cannot be that of the note, because others share the note.
pub(super) fn settle(
    draft: &mut Draft<'_>,
    notes: &[(String, Vec<usize>)],
    taken: &mut [Taken<'_>],
    structure: Structure,
) -> Result<Vec<Home>> {
    let mut homes = vec![Home::default(); taken.len()];
    for (path, files) in notes {
        let old = draft.page(path)?.cloned();
        for number in files {
            let page = &mut taken[*number].page;
            let own = old.as_ref().is_none_or(|old| old.front().is_some() && old.front() == page.front());
            if files.len() > 1 || !own {
                page.show_front();
            }
        }
        let sharing: Vec<&Taken<'_>> = files.iter().map(|number| &taken[*number]).collect();
        for (number, file) in files.iter().zip(&sharing) {
            let added = heading(path, file, &sharing, structure);
            let words = added.as_deref().map(|line| line.trim_start_matches('#').trim());
            let words = words.or(file.title().filter(|_| sharing.len() > 1));
            homes[*number] = Home { path: path.clone(), heading: words.map(str::to_owned) };
        }
    }
    Ok(homes)
}

/// Returns the heading to add for a file: none if the file begins with a heading that no other file has,
/// or is named like the note itself; else its name.
pub(super) fn heading(
    path: &str,
    file: &Taken<'_>,
    files: &[&Taken<'_>],
    structure: Structure,
) -> Option<String> {
    let alike =
        |other: &&Taken<'_>| other.from != file.from && text_of(other.first()) == text_of(file.first());
    let name = file.path.rsplit('/').next().unwrap_or(&file.path);
    let is_itself = path.rsplit('/').next() == Some(&slug(name));
    match file.title() {
        Some(_) if files.iter().any(alike) => Some(named(file, files, structure)),
        Some(_) => None,
        None => Some(named(file, files, structure)).filter(|_| !is_itself),
    }
}

fn text_of(piece: Option<&Piece>) -> Option<&str> {
    piece.map(|piece| piece.text.as_str())
}

/// Returns a heading for a file: its name, or its path if the name alone is ambiguous.
fn named(file: &Taken<'_>, files: &[&Taken<'_>], structure: Structure) -> String {
    let name = |path: &str| title_of(path.rsplit('/').next().unwrap_or(path));
    let same = files.iter().filter(|other| name(&other.path) == name(&file.path)).count();
    let words = match structure == Structure::Flatten || same > 1 {
        true => file.path.split('/').map(title_of).collect::<Vec<_>>().join(" / "),
        false => name(&file.path),
    };
    format!("## {words}")
}

/// Changes links between files to lead to the notes that will hold them, unless they already do. Returns
/// the links that lead to no note.
pub(super) fn rerouted(
    draft: &mut Draft<'_>,
    taken: &mut [Taken<'_>],
    homes: &[Home],
    new: &BTreeSet<String>,
) -> Result<Vec<DeadLink>> {
    let files: HashMap<String, &Home> = taken.iter().map(|file| file.path.clone()).zip(homes).collect();
    let mut paths: Vec<String> = files.keys().cloned().collect();
    paths.sort();
    let mut notes = draft.survey()?.paths();
    notes.extend(new.iter().cloned());
    notes.sort();
    notes.dedup();
    let mut dead: Vec<DeadLink> = Vec::new();
    for (file, home) in taken.iter_mut().zip(homes) {
        let was = file.path.clone();
        // A note that a folder was merged into does not count as a file of that name.
        let meant = |link: &WikiLink<'_>| {
            let named = resolved(link.target, &was, &paths, &mut |_| None);
            files.get(named.filter(|path| is_named(path, link.target))?).copied()
        };
        let leads = |link: &WikiLink<'_>| resolved(link.target, &home.path, &notes, &mut |_| None);
        for piece in file.page.pieces.iter_mut().filter(|piece| piece.kind != BlockKind::Code) {
            let links = links_in(&piece.text).into_iter().filter(|link| !link.target.is_empty());
            for link in links.filter(|link| meant(link).is_none() && leads(link).is_none()) {
                let found = DeadLink { from: file.from.to_owned(), to: link.target.to_owned() };
                if !dead.contains(&found) {
                    dead.push(found);
                }
            }
            piece.text = led(piece, meant, leads);
        }
    }
    Ok(dead)
}

/// Returns the text of a piece with its links leading to where the linked files go.
fn led<'h>(
    piece: &Piece,
    meant: impl Fn(&WikiLink<'_>) -> Option<&'h Home>,
    leads: impl Fn(&WikiLink<'_>) -> Option<&'h str>,
) -> String {
    rewritten(&piece.text, |link| {
        let home = meant(link).filter(|home| is_linkable(&home.path))?;
        // A line that lists a note stays even if it uses the name of a file that the note now contains.
        let fits = |to: &str| to == home.path && (is_named(to, link.target) || piece.role == Role::Link);
        let stays = leads(link).is_some_and(fits);
        (!stays).then_some((home.path.as_str(), home.heading.as_deref()))
    })
}
