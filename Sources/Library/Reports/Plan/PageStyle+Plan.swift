extension PageStyle {
  /// What only the page of a plan has: the picture of where the items go.
  ///
  /// The labels' lines are as high as `FlowLayout` takes them to be. Their columns are as wide as their text, up to a
  /// limit; where there is no room, words give way and counts don't.
  static let plan = """
    .views{border:0;margin-top:2rem;min-width:0;position:relative}
    .views>input{opacity:0;position:absolute}
    .views>label{border:1px solid var(--line);border-radius:1rem;cursor:pointer;display:inline-block;font-size:.9rem;\
    margin:0 .4rem .4rem 0;padding:.15rem .75rem}
    .views>:checked+label{background:var(--ink);border-color:var(--ink);color:var(--paper)}
    .views>:focus-visible+label{outline:2px solid var(--moves);outline-offset:2px}
    .flow{display:none;margin:.6rem 0 0}
    #by-app:checked~.by-app,#by-kind:checked~.by-kind,#by-protection:checked~.by-protection{display:block}
    figcaption{color:var(--soft);font-size:.9rem;margin-bottom:.9rem}
    .streams{align-items:center;column-gap:10px;display:grid;font-size:13px;\
    grid-template-columns:fit-content(15rem) minmax(5.5rem,1fr) fit-content(15rem)}
    .streams>svg{display:block;min-width:0}
    .streams ol{color:var(--soft);display:flex;flex-direction:column;gap:\(Int(FlowLayout.gap))px;list-style:none;\
    min-width:0}
    .streams li{align-items:center;display:flex;min-width:0}
    .streams li svg{display:block;flex:none;width:0}
    .streams li div{flex:1;min-width:0}
    .streams li p{display:flex;gap:.35em;height:\(Int(FlowLayout.lineHeight))px;line-height:\(Int(FlowLayout.lineHeight))px;\
    white-space:nowrap}
    .streams ol:first-child p{justify-content:flex-end}
    .streams b{color:var(--ink);flex:none;font-weight:650}
    .streams span{min-width:0;overflow:hidden;text-overflow:ellipsis}
    .band{stroke-width:0}
    .band.moves{fill:var(--moves-tint)}
    .bar{fill:var(--soft)}
    .bar.moves{fill:var(--moves)}.bar.stays{fill:var(--stays)}.bar.lost{fill:var(--lost)}.bar.gone{fill:var(--gone)}
    pattern path{fill:none;stroke-width:1.4}
    pattern.stays rect{fill:var(--stays-tint)}pattern.stays path{stroke:var(--stays);opacity:.45}
    pattern.lost rect{fill:var(--lost-tint)}pattern.lost circle{fill:var(--lost);opacity:.6}
    pattern.gone rect{fill:var(--gone-tint)}pattern.gone path{stroke:var(--gone);opacity:.5}
    @media screen and (max-width:36rem){.streams p:first-child{flex-direction:column;gap:0;\
    height:\(Int(2 * FlowLayout.lineHeight))px}.streams ol:first-child p:first-child{align-items:flex-end}\
    .streams p:first-child span{max-width:100%}}
    @media print{.views{margin-top:1.2rem}.views>label{display:none}.streams{max-width:15cm;margin:0 auto}}

    """
}
