import KeyhaulKit

/// The diagram of a move: flows of items from their groups on the left to their outcomes on the right. Patterns and
/// labels repeat the information in the colors.
///
/// Labels are text of the page next to the drawing. The browser determines the widths of their columns, so a count is
/// always in its column, with any font. A name that is too long ends in an ellipsis.
struct SankeyView {
  private let diagram: SankeyDiagram
  private let source: String?
  private let target: String
  private let isSameDevice: Bool

  /// Creates the view of a diagram.
  ///
  /// - Parameters:
  ///   - diagram: The flows of the items.
  ///   - source: The name of the source device; `nil` if it is unknown or left out.
  ///   - target: The name of the target device.
  ///   - isSameDevice: Whether both are the same device.
  init(_ diagram: SankeyDiagram, source: String?, target: String, isSameDevice: Bool) {
    self.diagram = diagram
    self.source = source
    self.target = target
    self.isSameDevice = isSameDevice
  }

  private static let barWidth = 9.0

  func write(to page: inout HTMLWriter) {
    page.newLine()
    page.element("figure", ["class": "flow by-\(diagram.axis.rawValue)"]) { page in
      page.element("figcaption", caption)
      let layout = SankeyLayout(diagram)
      page.element("div", ["class": "streams"]) { page in
        page.element("ol", ["aria-hidden": "true"]) { page in
          for (origin, bar) in layout.origins {
            let lines = origin.lines.map { (text: $0, isName: origin.isName) }
            writeLabel(of: bar, count: diagram.count(of: origin), lines: lines, to: &page)
          }
        }
        writeDrawing(layout, to: &page)
        page.element("ol", ["aria-hidden": "true"]) { page in
          for (destination, bar) in layout.destinations {
            let count = diagram.count(of: destination)
            let lines = labelLines(for: destination, isSingle: count == 1)
            writeLabel(of: bar, count: count, lines: lines, to: &page)
          }
        }
      }
    }
  }

  private var caption: String {
    let count = diagram.flows.reduce(0) { $0 + ($1.origin == .onTarget ? 0 : $1.count) }
    let subject = count == 1 ? "the item goes" : "the \(HumanReadable.grouped(count)) items go"
    return "Where \(subject), by \(diagram.axis.displayName)"
  }

  /// The diagram as text, for people who cannot see it.
  private var description: String {
    let parts = diagram.flows.map { flow in
      let origin = flow.origin.lines.map { HTMLWriter.shortened($0) }.joined(separator: ", ")
      return "\(origin): \(HumanReadable.count(flow.count, "item")) "
        + labelLines(for: flow.destination, isSingle: flow.count == 1).map { HTMLWriter.shortened($0.text) }.joined(
          separator: " ")
    }
    return parts.joined(separator: "; ") + "."
  }

  private typealias Line = (text: String, isName: Bool)

  private func labelLines(for destination: SankeyDiagram.Destination, isSingle: Bool) -> [Line] {
    switch destination {
    case .moves: [(isSameDevice ? "restored to" : isSingle ? "moves to" : "move to", false), (target, true)]
    case .stays:
      // On a narrow screen, "the source device" has no room in one line.
      if let source {
        [(isSingle ? "stays on" : "stay on", false), (source, true)]
      } else {
        [(isSingle ? "stays on the" : "stay on the", false), ("source device", false)]
      }
    case .lost: [("cannot", false), ("be read", false)]
    case .gone: [("removed from", false), (target, true)]
    }
  }

  // MARK: Labels

  /// Writes a count and lines of text, centered next to a bar.
  private func writeLabel(of bar: SankeyLayout.Bar, count: Int, lines: [Line], to page: inout HTMLWriter) {
    page.element("li") { page in
      page.voidElement("svg", ["width": "0", "height": Self.number(bar.slotHeight)])
      page.element("div") { page in
        for (index, line) in lines.enumerated() {
          page.element("p") { page in
            if index == 0 { page.element("b", HumanReadable.grouped(count)) }
            page.element("span") { page in
              if line.isName { page.name(line.text) } else { page.text(line.text) }
            }
          }
        }
      }
    }
  }

  // MARK: Drawing

  private func writeDrawing(_ layout: SankeyLayout, to page: inout HTMLWriter) {
    let idPrefix = diagram.axis.rawValue
    let attributes: HTMLWriter.Attributes = [
      "width": "100%", "height": Self.number(layout.height), "role": "img",
      "aria-labelledby": "\(idPrefix)-title \(idPrefix)-description",
    ]
    page.element("svg", attributes) { page in
      page.element("title", ["id": "\(idPrefix)-title"], caption)
      page.element("desc", ["id": "\(idPrefix)-description"], description)
      page.element("defs") { page in
        writePattern(.stays, size: 7, to: &page) { $0.voidElement("path", ["d": "M-1 8L8 -1M-2 2L2 -2M5 9L9 5"]) }
        writePattern(.lost, size: 6, to: &page) { $0.voidElement("circle", ["cx": "3", "cy": "3", "r": "1.3"]) }
        writePattern(.gone, size: 5, to: &page) { $0.voidElement("path", ["d": "M0 2.5H5"]) }
      }
      for (index, band) in layout.bands.enumerated() {
        draw(band, index: index, drawingHeight: layout.height, to: &page)
      }
      for (_, bar) in layout.origins { draw(bar, style: "bar", x: "0", to: &page) }
      // The bars on the right end at the right edge.
      page.element("g", ["transform": "translate(-\(Self.number(Self.barWidth)) 0)"]) { page in
        for (destination, bar) in layout.destinations {
          draw(bar, style: "bar \(destination.rawValue)", x: "100%", to: &page)
        }
      }
    }
  }

  private func writePattern(
    _ destination: SankeyDiagram.Destination, size: Int, to page: inout HTMLWriter, drawMark: HTMLWriter.Body
  ) {
    let attributes: HTMLWriter.Attributes = [
      "id": "\(diagram.axis.rawValue)-\(destination.rawValue)", "class": destination.rawValue, "width": "\(size)",
      "height": "\(size)",
      "patternUnits": "userSpaceOnUse",
    ]
    page.element("pattern", attributes) { page in
      page.voidElement("rect", ["width": "\(size)", "height": "\(size)"])
      drawMark(&page)
    }
  }

  /// Draws a band: an area of the size of the drawing, clipped with fractions of its width and height. As a result,
  /// the band grows with the column, but the pattern does not.
  private func draw(
    _ band: SankeyLayout.Band, index: Int, drawingHeight: Double, to page: inout HTMLWriter
  ) {
    func fraction(_ y: Double) -> String { Self.fraction(y / drawingHeight) }
    let (start, end) = (fraction(band.start), fraction(band.end))
    let (lowerStart, lowerEnd) = (fraction(band.start + band.thickness), fraction(band.end + band.thickness))
    let clipPath = "\(diagram.axis.rawValue)-band-\(index)"
    page.element("clipPath", ["id": clipPath, "clipPathUnits": "objectBoundingBox"]) { page in
      // The upper edge from left to right, then the lower edge back. Both are curves that start and end horizontally.
      page.voidElement(
        "path",
        ["d": "M0 \(start)C.5 \(start) .5 \(end) 1 \(end)V\(lowerEnd)C.5 \(lowerEnd) .5 \(lowerStart) 0 \(lowerStart)Z"]
      )
    }
    let destination = band.flow.destination.rawValue
    if band.flow.destination == .moves {
      page.voidElement(
        "rect", ["class": "band \(destination)", "width": "100%", "height": "100%", "clip-path": "url(#\(clipPath))"])
    } else {
      page.voidElement(
        "rect",
        [
          "class": "band \(destination)", "width": "100%", "height": "100%", "clip-path": "url(#\(clipPath))",
          "fill": "url(#\(diagram.axis.rawValue)-\(destination))",
        ])
    }
  }

  private func draw(_ bar: SankeyLayout.Bar, style: String, x: String, to page: inout HTMLWriter) {
    page.voidElement(
      "rect",
      [
        "class": style, "x": x, "y": Self.number(bar.top), "width": Self.number(Self.barWidth),
        "height": Self.number(bar.height), "rx": "2",
      ])
  }

  /// Returns a number with one decimal place, because more are not visible.
  private static func number(_ value: Double) -> String { decimal(value, digits: 1) }

  /// Returns a fraction of 1 with four decimal places, which is precise enough for a pixel of a tall drawing.
  private static func fraction(_ value: Double) -> String { decimal(value, digits: 4) }

  private static func decimal(_ value: Double, digits: Int) -> String {
    let scale = (0..<digits).reduce(1.0) { scale, _ in scale * 10 }
    let text = String((value * scale).rounded() / scale)
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }
}

extension SankeyDiagram.Axis {
  /// The grouping, as in the caption.
  var displayName: String {
    switch self {
    case .app: "app"
    case .kind: "kind"
    case .protection: "protection"
    }
  }
}

extension PageStyle {
  /// The style rules of the diagram, for pages that have one.
  ///
  /// A label's line has the height that `SankeyLayout` calculates with. A column is as wide as its text, up to a limit;
  /// if there is not enough room, words are cut, but counts are not.
  static let sankey = """
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
    .streams ol{color:var(--soft);display:flex;flex-direction:column;gap:\(Int(SankeyLayout.gap))px;list-style:none;\
    min-width:0}
    .streams li{align-items:center;display:flex;min-width:0}
    .streams li svg{display:block;flex:none;width:0}
    .streams li div{flex:1;min-width:0}
    .streams li p{display:flex;gap:.35em;height:\(Int(SankeyLayout.lineHeight))px;line-height:\(Int(SankeyLayout.lineHeight))px;\
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
    height:\(Int(2 * SankeyLayout.lineHeight))px}.streams ol:first-child p:first-child{align-items:flex-end}\
    .streams p:first-child span{max-width:100%}}
    @media print{.views{margin-top:1.2rem}.views>input,.views>label{display:none}.streams{max-width:15cm;margin:0 auto}}

    """
}
