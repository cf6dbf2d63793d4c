extension PageStyle {
  /// The parts that reports share: tiles, cards, tables, folded lists and steps.
  static let parts = """
    .tiles{display:grid;gap:.75rem;grid-template-columns:repeat(auto-fit,minmax(7.5rem,1fr));margin-top:1.6rem}
    .tiles li{background:var(--card);border:1px solid var(--line);border-radius:.7rem;line-height:1.3;\
    padding:.8rem 1rem;position:relative}
    .tiles b{display:block;font-size:1.8rem;font-variant-numeric:tabular-nums;letter-spacing:-.02em;line-height:1.15}
    .symbol{font:600 1.1rem/1 ui-monospace,"SF Mono",Menlo,Consolas,monospace;position:absolute;right:.9rem;top:1rem}
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
    table{border-collapse:collapse;margin-top:1rem;width:100%}
    th{color:var(--soft);font-size:.85rem;font-weight:600}
    th,td{border-bottom:1px solid var(--line);min-width:0;padding:.5rem .75rem .5rem 0;text-align:left;vertical-align:top}
    th:last-child,td:last-child{padding-right:0}
    td{font-size:.93rem;overflow:hidden}
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
    .next pre{background:var(--code);border-radius:.5rem;margin-top:.5rem;padding:.6rem .9rem;white-space:pre-wrap}
    .next pre code{background:none;display:block;padding:0 0 0 1.5em;text-indent:-1.5em}
    .next pre span{display:inline-block;max-width:100%;text-indent:0}
    @media screen and (max-width:36rem){.tiles{grid-template-columns:1fr 1fr}.card{padding:.9rem 1rem}\
    .rows thead{display:none}.rows tr{display:block;padding:.6rem 0 .6rem 1.5rem;position:relative}\
    .rows td{border:0;display:block;padding:0}.rows td:first-child{left:0;position:absolute}\
    .rows td:nth-child(3),.rows td:nth-child(4){color:var(--soft);display:inline;font-size:.85rem}\
    .rows td:nth-child(3):not(:empty)::after{content:" · "}.rows td:empty::after{content:none}\
    .rows td:last-child small{display:inline}.rows td:last-child small::before{content:" · "}}
    @media print{.rows th:first-child{width:1.6rem}.rows th:nth-child(2){width:33%}.rows th:nth-child(3){width:25%}\
    .rows th:nth-child(4){width:21%}.tiles{gap:.5rem}.tiles li{padding:.5rem .75rem}.tiles b{font-size:1.4rem}\
    .card{padding:.6rem .9rem}.items{margin-top:1.4rem}th,td{padding:.2rem .5rem .2rem 0}.next li+li{margin-top:.6rem}\
    .tree details,.tree div{padding:.2rem 0}}

    """
}
