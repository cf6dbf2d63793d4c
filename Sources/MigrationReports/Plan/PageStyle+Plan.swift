extension PageStyle {
  /// What only the page of a plan has: tiles, the picture, cards, the table and its filters.
  static let plan = """
    .tiles{display:grid;gap:.75rem;grid-template-columns:repeat(4,1fr);margin-top:1.6rem}
    .tiles li{background:var(--card);border:1px solid var(--line);border-radius:.7rem;line-height:1.3;\
    padding:.8rem 1rem;position:relative}
    .tiles b{display:block;font-size:1.8rem;font-variant-numeric:tabular-nums;letter-spacing:-.02em;line-height:1.15}
    .symbol{font:600 1.1rem/1 ui-monospace,"SF Mono",Menlo,Consolas,monospace;position:absolute;right:.9rem;top:1rem}
    .tiles .moves b,.tiles .moves .symbol{color:var(--moves)}
    .tiles .stays b,.tiles .stays .symbol{color:var(--stays)}
    .tiles .lost b,.tiles .lost .symbol{color:var(--lost)}
    .tiles .gone b,.tiles .gone .symbol{color:var(--gone)}
    .tiles .none,.tiles .none b,.tiles .none .symbol{color:var(--soft)}
    .flow{margin:2.25rem 0 0}
    figcaption{color:var(--soft);font-size:.9rem;margin-bottom:.9rem}
    .flow svg{display:block;height:auto;margin:0 auto;max-width:100%;width:100%}
    .flow .narrow{display:none;max-width:26rem}
    .flow text{fill:var(--soft);font-size:13px}
    .flow .count{fill:var(--ink);font-weight:650}
    .band{stroke-width:0}
    .band.moves{fill:var(--moves-tint)}
    .bar{fill:var(--soft)}
    .bar.moves{fill:var(--moves)}.bar.stays{fill:var(--stays)}.bar.lost{fill:var(--lost)}.bar.gone{fill:var(--gone)}
    pattern path{fill:none;stroke-width:1.4}
    pattern.stays rect{fill:var(--stays-tint)}pattern.stays path{stroke:var(--stays);opacity:.45}
    pattern.lost rect{fill:var(--lost-tint)}pattern.lost circle{fill:var(--lost);opacity:.6}
    pattern.gone rect{fill:var(--gone-tint)}pattern.gone path{stroke:var(--gone);opacity:.5}
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
    .items{margin-top:2.75rem}
    .items h2{margin:0}
    .filter{border:0;display:none;flex-wrap:wrap;gap:.4rem;margin-top:.7rem;position:relative}
    .filter input{opacity:0;position:absolute}
    .filter label{border:1px solid var(--line);border-radius:1rem;cursor:pointer;font-size:.9rem;padding:.15rem .75rem}
    .filter span{color:var(--soft);font-variant-numeric:tabular-nums}
    .filter :checked+label{background:var(--ink);border-color:var(--ink);color:var(--paper)}
    .filter :checked+label span{color:inherit}
    .filter :focus-visible+label{outline:2px solid var(--moves);outline-offset:2px}
    @supports selector(:has(*)){.filter{display:flex}}
    .items:has(#show-m:checked) tbody tr:not(.m),.items:has(#show-s:checked) tbody tr:not(.s),\
    .items:has(#show-u:checked) tbody tr:not(.u),.items:has(#show-g:checked) tbody tr:not(.g),\
    .items:has(#show-i:checked) tbody tr:not(.i),.items:has(#show-c:checked) tbody tr:not(.c),\
    .items:has(#show-k:checked) tbody tr:not(.k){display:none}
    table{border-collapse:collapse;margin-top:1rem;table-layout:fixed;width:100%}
    th{color:var(--soft);font-size:.85rem;font-weight:600}
    th,td{border-bottom:1px solid var(--line);min-width:0;padding:.5rem .75rem .5rem 0;text-align:left;vertical-align:top}
    @media screen{table,thead,tbody{display:block}tbody{content-visibility:auto;contain-intrinsic-size:auto 175rem}\
    tr{border-bottom:1px solid var(--line);display:grid;grid-template-columns:1.6rem 33fr 27fr 21fr 19fr}\
    th,td{border:0}}
    td{font-size:.93rem;overflow:hidden}
    td:first-child{font-family:ui-monospace,"SF Mono",Menlo,Consolas,monospace;font-weight:600}
    td i{font-style:normal}
    td i::before{content:" · "}
    td:empty::after{color:var(--soft);content:"–"}
    td small{display:block}
    td small{color:var(--soft);font-size:.85em}
    .m td:first-child{color:var(--moves)}.s td:first-child{color:var(--stays)}.u td:first-child{color:var(--lost)}
    .next ol{counter-reset:step;list-style:none}
    .next li{counter-increment:step;padding-left:2.2rem;position:relative}
    .next li+li{margin-top:1.1rem}
    .next li::before{border:1px solid var(--line);border-radius:50%;color:var(--soft);content:counter(step);\
    font-size:.85rem;font-weight:600;height:1.6rem;left:0;line-height:1.5rem;position:absolute;text-align:center;\
    width:1.6rem}
    .next pre{background:var(--code);border-radius:.5rem;margin-top:.5rem;padding:.6rem .9rem;white-space:pre-wrap}
    .next pre code{background:none;display:block;padding:0 0 0 1.5em;text-indent:-1.5em}
    .next pre span{display:inline-block;max-width:100%;text-indent:0}
    @media screen and (max-width:36rem){.tiles{grid-template-columns:1fr 1fr}.flow .wide{display:none}.flow .narrow{display:block}\
    .card{padding:.9rem 1rem}thead{display:none}tr{display:block;padding:.6rem 0 .6rem 1.5rem;position:relative}td{border:0;display:block;padding:0}\
    td:first-child{left:0;position:absolute}td:nth-child(3),td:nth-child(4){color:var(--soft);display:inline;\
    font-size:.85rem}td:nth-child(3):not(:empty)::after{content:" · "}td:empty::after{content:none}\
    td:last-child small{display:inline}td:last-child small::before{content:" · "}}
    @media print{th:first-child{width:1.6rem}th:nth-child(2){width:33%}th:nth-child(3){width:27%}th:nth-child(4){width:20%}\
    .tiles{gap:.5rem}\
    .tiles li{padding:.5rem .75rem}.tiles b{font-size:1.4rem}.flow{margin-top:1.2rem}.flow svg{max-width:13.5cm}.card{padding:.6rem .9rem}\
    .items{margin-top:1.4rem}th,td{padding:.2rem .5rem .2rem 0}.next li+li{margin-top:.6rem}}

    """
}
