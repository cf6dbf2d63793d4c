/// The style sheets of the pages. Plain text, so that a page needs nothing besides itself.
package enum PageStyle {
  /// Colors, type and the parts that every report has.
  package static let base = """
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

  /// On paper: everything open, in ink, and cards in one piece.
  package static let print = """
    @media print{@page{margin:14mm}html{background:none;font-size:9pt;line-height:1.4}body{max-width:none;padding:0}\
    .verdict{font-size:1.5rem}h2{break-after:avoid;margin:1.1rem 0 .5rem}\
    details::details-content{content-visibility:visible;display:block}summary{list-style:none}\
    article,figure,tr,pre,li{break-inside:avoid}.filter{display:none!important}footer{margin-top:1.2rem}}

    """
}
