extension PageStyle {
  /// What only the page of a plan has: the picture of where the items go.
  static let plan = """
    .flow{margin:2.25rem 0 0}
    figcaption{color:var(--soft);font-size:.9rem;margin-bottom:.9rem}
    .flow svg{display:block;height:auto;margin:0 auto;max-width:100%;width:100%}
    .flow .narrow{display:none;max-width:26rem}
    .flow text{fill:var(--soft);font-size:\(Int(LabelWidth.fontSize))px}
    .flow .count{fill:var(--ink);font-weight:650}
    .band{stroke-width:0}
    .band.moves{fill:var(--moves-tint)}
    .bar{fill:var(--soft)}
    .bar.moves{fill:var(--moves)}.bar.stays{fill:var(--stays)}.bar.lost{fill:var(--lost)}.bar.gone{fill:var(--gone)}
    pattern path{fill:none;stroke-width:1.4}
    pattern.stays rect{fill:var(--stays-tint)}pattern.stays path{stroke:var(--stays);opacity:.45}
    pattern.lost rect{fill:var(--lost-tint)}pattern.lost circle{fill:var(--lost);opacity:.6}
    pattern.gone rect{fill:var(--gone-tint)}pattern.gone path{stroke:var(--gone);opacity:.5}
    @media screen and (max-width:36rem){.flow .wide{display:none}.flow .narrow{display:block}}
    @media print{.flow{margin-top:1.2rem}.flow svg{max-width:13.5cm}}

    """
}
