import KeyhaulKit

/// The frame of all pages: one self-contained file without scripts, readable in light mode, in dark mode and on paper.
struct ReportPage: Sendable {
  /// The title of the browser's tab.
  let title: String
  /// The name and version of the program, for the end of the page: "keyhaul 1.0".
  let program: String
  /// A sentence about the personal data on the page, for users who want to share it.
  var privacyNote: String
  /// The additional style rules of this page.
  var style: String

  init(
    title: String, program: String, privacyNote: String = "This page contains account names, but no passwords.",
    style: String = ""
  ) {
    self.title = title
    self.program = program
    self.privacyNote = privacyNote
    self.style = style
  }

  /// Returns the page as one document.
  ///
  /// - Parameters:
  ///   - body: Writes the content of the page.
  ///   - footer: Writes the part of the footer above the program's name.
  /// - Throws: `.cryptoFailed` if the style sheet's digest cannot be computed.
  func html(body: HTMLWriter.Body, footer: HTMLWriter.Body = { _ in }) throws(DataProtectionError) -> String {
    let styleSheet = PageStyle.base + PageStyle.parts + style + PageStyle.print
    let policy = try ContentPolicy.allowing(style: styleSheet)
    var page = HTMLWriter()
    page.element("html", ["lang": "en"]) { page in
      page.element("head") { page in
        page.voidElement("meta", ["charset": "utf-8"])
        page.voidElement("meta", ["name": "viewport", "content": "width=device-width, initial-scale=1"])
        page.voidElement("meta", ["name": "color-scheme", "content": "light dark"])
        page.voidElement("meta", ["name": "referrer", "content": "no-referrer"])
        page.voidElement("meta", ["http-equiv": "Content-Security-Policy", "content": policy])
        page.element("title", HTMLWriter.shortened(title))
        page.style(styleSheet)
      }
      page.newLine()
      page.element("body") { page in
        page.element("main", [:], body)
        page.newLine()
        page.element("footer") { page in
          footer(&page)
          page.element("p", "Made by \(program). \(privacyNote)")
        }
      }
    }
    return "<!DOCTYPE html>\n" + page.html + "\n"
  }
}

/// The style sheets of the pages, which every page contains as text.
enum PageStyle {
  /// The colors, fonts and basic elements of all pages.
  static let base = """
    :root{color-scheme:light dark;--paper:#faf9f6;--card:#fff;--ink:#1c2330;--soft:#565f6e;--line:#e2dfd7;\
    --moves:#17725a;--moves-tint:#bfe0d3;--stays:#8a5300;--stays-tint:#f6e2bd;--lost:#b02a2a;--lost-tint:#f6d4d0;\
    --gone:#5550a0;--gone-tint:#dcdaf2;--code:#f1efe9}
    @media screen and (prefers-color-scheme:dark){:root{--paper:#14171c;--card:#1b1f26;--ink:#e8eaed;--soft:#a5adb9;\
    --line:#2d333d;--moves:#74cfab;--moves-tint:#20493e;--stays:#e6b868;--stays-tint:#4a3a1c;--lost:#f2968b;\
    --lost-tint:#53282a;--gone:#b3aff2;--gone-tint:#35335c;--code:#252a33}}
    *{box-sizing:border-box}
    html{background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",sans-serif;\
    -webkit-text-size-adjust:100%;text-size-adjust:100%}
    body{margin:0 auto;max-width:54rem;padding:2.75rem 1.25rem 2rem;overflow-wrap:anywhere}
    h1,h2,h3,p,ul,ol,figure,pre,fieldset{margin:0;padding:0}
    h1{color:var(--soft);font-size:1rem;font-weight:600}
    h2{font-size:1.2rem;font-weight:650;letter-spacing:-.01em;line-height:1.3;margin:2.75rem 0 .9rem}
    h3{font-size:1rem;font-weight:600;line-height:1.4;text-wrap:balance}
    p{text-wrap:pretty}
    strong,b{font-weight:600}
    code{background:var(--code);border-radius:.3rem;font:.86em/1.5 ui-monospace,"SF Mono",Menlo,Consolas,monospace;\
    font-variant-ligatures:none;padding:.1em .35em}
    ul{list-style:none}
    .verdict{font-size:1.95rem;font-weight:650;letter-spacing:-.022em;line-height:1.2;margin:.4rem 0 .9rem;\
    text-wrap:balance}
    .facts,.muted,.more,footer{color:var(--soft)}
    .unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
    summary{cursor:pointer}
    summary h2{display:inline-block}
    summary::marker{color:var(--soft)}
    :focus-visible{outline:2px solid var(--moves);outline-offset:2px}
    footer{border-top:1px solid var(--line);font-size:.85rem;margin-top:3rem;padding-top:1rem}
    footer code{background:none;padding:0}
    @media (max-width:36rem){body{padding:1.75rem 1rem 1.5rem}.verdict{font-size:1.55rem}}

    """

  /// The rules for printing: all details are expanded, and no card is split across pages.
  static let print = """
    @media print{@page{margin:14mm}html{background:none;font-size:9pt;line-height:1.4}body{max-width:none;padding:0}\
    .verdict{font-size:1.5rem}h2{break-after:avoid;margin:1.1rem 0 .5rem}\
    details::details-content{content-visibility:visible;display:block}summary{list-style:none}\
    article,figure,tr,pre,li{break-inside:avoid}.filter,.items>input{display:none!important}footer{margin-top:1.2rem}}

    """
}

extension PageStyle {
  /// The rules for shared parts of pages: tiles, cards, tables, collapsed lists and steps.
  ///
  /// In print, all rows are visible, and long words are broken. Filters and the clipping of cells apply only to screens,
  /// and no rule uses `:has()`. Otherwise, the time to print a table would grow with the square of the number of rows.
  static let parts = """
    .tiles{display:grid;gap:.75rem;grid-template-columns:repeat(auto-fit,minmax(7.5rem,1fr));margin-top:1.6rem}
    .tiles li{background:var(--card);border:1px solid var(--line);border-radius:.7rem;line-height:1.3;\
    padding:.8rem 1rem}
    .tiles b{font-size:1.8rem;font-variant-numeric:tabular-nums;letter-spacing:-.02em;line-height:1.15}
    .tiles p{align-items:baseline;column-gap:.4rem;display:flex;flex-wrap:wrap-reverse;justify-content:space-between}
    .tiles b{overflow-wrap:normal}
    .symbol{font:600 1.1rem/1 ui-monospace,"SF Mono",Menlo,Consolas,monospace}
    .tiles .moves b,.tiles .moves .symbol{color:var(--moves)}
    .tiles .stays b,.tiles .stays .symbol{color:var(--stays)}
    .tiles .lost b,.tiles .lost .symbol{color:var(--lost)}
    .tiles .gone b,.tiles .gone .symbol{color:var(--gone)}
    .tiles .none,.tiles .none b,.tiles .none .symbol{color:var(--soft)}
    .card{background:var(--card);border:1px solid var(--line);border-left:.3rem solid var(--soft);border-radius:.7rem;\
    margin-top:.75rem;padding:1rem 1.25rem}
    .card.stays{border-left-color:var(--stays)}.card.lost{border-left-color:var(--lost)}
    .card.gone{border-left-color:var(--gone)}
    .card p{margin-top:.45rem}
    .do code{white-space:nowrap}
    .card .count{align-items:baseline;display:flex;flex-wrap:wrap;font-size:.9rem;gap:.5rem;margin:0 0 .2rem;\
    justify-content:space-between}
    .card .count code{color:var(--soft)}
    .card.stays b{color:var(--stays)}.card.lost b{color:var(--lost)}.card.gone b{color:var(--gone)}
    .names{display:flex;flex-wrap:wrap;gap:.4rem;margin-top:.7rem}
    .names li{border:1px solid var(--line);border-radius:.5rem;font-size:.9rem;padding:.15rem .6rem}
    .more{margin-top:.7rem}
    details{margin-top:.7rem}
    section>details h2,.items h2{margin:0}
    .items{margin-top:2.75rem}
    .filter{border:0;display:flex;flex-wrap:wrap;gap:.4rem;margin-top:.7rem;position:relative}
    .items>input{opacity:0;position:absolute}
    .filter label{border:1px solid var(--line);border-radius:1rem;cursor:pointer;font-size:.9rem;padding:.15rem .75rem}
    .filter span{color:var(--soft);font-variant-numeric:tabular-nums}
    \(selectedLabels(":checked")){background:var(--ink);border-color:var(--ink);color:var(--paper)}
    \(selectedLabels(":checked", part: " span")){color:inherit}
    \(selectedLabels(":focus-visible")){outline:2px solid var(--moves);outline-offset:2px}
    @media screen{\(hiddenRows){display:none}}
    table{border-collapse:collapse;margin-top:1rem;width:100%}
    th{color:var(--soft);font-size:.85rem;font-weight:600}
    th,td{border-bottom:1px solid var(--line);min-width:0;padding:.5rem .75rem .5rem 0;text-align:left;vertical-align:top}
    th:last-child,td:last-child{padding-right:0}
    td{font-size:.93rem}
    @media screen{td{overflow:hidden}}
    td small{color:var(--soft);display:block;font-size:.85em}
    .number{font-variant-numeric:tabular-nums;text-align:right;white-space:nowrap}
    .plain tbody th{color:inherit;font-size:.93rem;font-weight:400}
    .plain tfoot th,.plain tfoot td{border-bottom:0;font-size:.93rem;font-weight:600}
    .rows{table-layout:fixed}
    @media screen{.rows,.rows thead,.rows tbody{display:block}\
    .rows tbody{content-visibility:auto;contain-intrinsic-size:auto 175rem}\
    .rows tr{border-bottom:1px solid var(--line);display:grid;grid-template-columns:1.6rem 33fr 25fr 22fr 20fr}\
    .rows th,.rows td{border:0}}
    .rows td:first-child{font-family:ui-monospace,"SF Mono",Menlo,Consolas,monospace;font-weight:600}
    .rows td i{font-style:normal}
    .rows td i::before{content:" · "}
    .rows td:empty::after{color:var(--soft);content:"–"}
    .m td:first-child{color:var(--moves)}.s td:first-child{color:var(--stays)}.u td:first-child{color:var(--lost)}
    .r td:first-child{color:var(--gone)}
    .tree{font-size:.93rem}
    .tree details,.tree div{border-bottom:1px solid var(--line);margin:0;padding:.4rem 0}
    .tree details>div,.tree details>details{border-top:1px solid var(--line);border-bottom:0;margin-left:1.1rem}
    .tree details>summary{padding-bottom:.1rem}
    .tree details[open]>summary{padding-bottom:.4rem}
    .tree span{color:var(--soft);float:right;font-variant-numeric:tabular-nums;padding-left:1rem}
    .tree .lost{color:var(--lost);font-weight:600}
    .next ol{counter-reset:step;list-style:none}
    .next li{counter-increment:step;padding-left:2.2rem;position:relative}
    .next li+li{margin-top:1.1rem}
    .next li::before{border:1px solid var(--line);border-radius:50%;color:var(--soft);content:counter(step);\
    font-size:.85rem;font-weight:600;height:1.6rem;left:0;line-height:1.5rem;position:absolute;text-align:center;\
    width:1.6rem}
    .checklist h3{margin:1.3rem 0 .2rem}
    .checklist li{align-items:baseline;border-top:1px solid var(--line);column-gap:.8rem;display:grid;\
    grid-template-columns:1.1rem minmax(0,1fr);padding:.5rem 0}
    .checklist li:last-child{border-bottom:1px solid var(--line)}
    .checklist input{accent-color:var(--moves);height:1.05rem;margin:0;transform:translateY(.15rem);width:1.05rem}
    .checklist label{cursor:pointer}
    .checklist :checked+label{color:var(--soft);text-decoration:line-through}
    .checklist small{color:var(--soft);display:block;font-size:.85rem}
    .checklist li pre,.checklist .details{grid-column:2}
    .checklist .details{color:var(--soft);font-size:.93rem}
    .next pre,.checklist pre{background:var(--code);border-radius:.5rem;margin-top:.5rem;padding:.6rem .9rem;white-space:pre-wrap}
    .next pre code,.checklist pre code{background:none;display:block;padding:0 0 0 1.5em;text-indent:-1.5em}
    .next pre span,.checklist pre span{display:inline-block;max-width:100%;text-indent:0}
    @media screen and (max-width:36rem){.tiles{grid-template-columns:1fr 1fr}.tiles li{padding:.8rem .7rem}\
    .tiles b{font-size:1.5rem}.card{padding:.9rem 1rem}\
    .rows thead{display:none}.rows tr{display:block;padding:.6rem 0 .6rem 1.5rem;position:relative}\
    .rows td{border:0;display:block;padding:0}.rows td:first-child{left:0;position:absolute}\
    .rows td:nth-child(3),.rows td:nth-child(4){color:var(--soft);display:inline;font-size:.85rem}\
    .rows td:nth-child(3):not(:empty)::after{content:" · "}.rows td:empty::after{content:none}\
    .rows td:last-child small{display:inline}.rows td:last-child small::before{content:" · "}}
    @media print{.rows th:first-child{width:1.6rem}.rows th:nth-child(2){width:33%}.rows th:nth-child(3){width:25%}\
    .rows th:nth-child(4){width:21%}.tiles{gap:.5rem}.tiles li{padding:.5rem .75rem}.tiles b{font-size:1.4rem}\
    .card{padding:.6rem .9rem}.items{margin-top:1.4rem}th,td{padding:.2rem .5rem .2rem 0}.next li+li{margin-top:.6rem}\
    .tree details,.tree div{padding:.2rem 0}.checklist li{padding:.3rem 0}.checklist h3{break-after:avoid;\
    margin-top:.9rem}.checklist input{appearance:none;border:1px solid var(--ink)}\
    .checklist :checked+label{color:inherit;text-decoration:none}}

    """

  /// The CSS classes of rows that the filters select, by outcome and by kind (`PageTable`).
  private static let filters = ["m", "s", "u", "g", "i", "c", "k"]

  /// Returns the selectors of the filter labels whose radio button is in a state, or of a part of these labels.
  private static func selectedLabels(_ state: String, part: String = "") -> String {
    (["all-outcome", "all-kind"] + filters).map { "#show-\($0)\(state)~.filter [for=show-\($0)]\(part)" }
      .joined(separator: ",")
  }

  /// The selectors of rows that the chosen filter hides.
  private static var hiddenRows: String {
    filters.map { "#show-\($0):checked~.rows tbody tr:not(.\($0))" }.joined(separator: ",")
  }
}
