//! Small charts, drawn here as SVG. They carry no colour of their own: the style gives it.

use maud::{Markup, html};

const HEIGHT: usize = 96;
const STEP: usize = 16;

/// Bars that stand side by side, such as days.
pub(super) fn standing(name: &str, values: &[(String, usize)]) -> Markup {
    let most = values.iter().map(|(_, value)| *value).max().unwrap_or(0);
    let width = values.len() * STEP;
    let height = |value: usize| if value == 0 { 1 } else { (value * (HEIGHT - 8) / most.max(1)).max(3) };
    let total: usize = values.iter().map(|(_, value)| value).sum();
    let view = format!("0 0 {width} {HEIGHT}");
    html! {
        figure.chart {
            svg viewBox=(view) role="img" aria-label=(format!("{name}: {total} in all, at most {most}")) preserveAspectRatio="none" {
                @for (index, (label, value)) in values.iter().enumerate() {
                    rect x=(index * STEP + 2) y=(HEIGHT - height(*value)) width=(STEP - 4) height=(height(*value)) rx="2"
                        class=(if *value == 0 { "none" } else { "bar" }) { title { (label) ": " (value) } }
                }
            }
            figcaption {
                span { (values.first().map_or("", |(label, _)| label)) }
                span { "at most " (most) }
                span { (values.last().map_or("", |(label, _)| label)) }
            }
        }
    }
}

/// Bars that lie one below the other, with their names.
pub(super) fn lying(values: &[(String, u64, String)]) -> Markup {
    let most = values.iter().map(|(_, value, _)| *value).max().unwrap_or(0).max(1);
    html! {
        dl.bars {
            @for (label, value, told) in values {
                dt { (label) }
                dd {
                    svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
                        rect.bar width=((value * 100).div_ceil(most)) height="8" rx="1" {}
                    }
                    span { (told) }
                }
            }
        }
    }
}
