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

  /// - Parameters:
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
            label(diagram.count(of: origin), origin.lines.map { ($0, origin.isName) }, bar, to: &page)
          }
        }
        drawing(layout, to: &page)
        page.element("ol", ["aria-hidden": "true"]) { page in
          for (destination, bar) in layout.destinations {
            let count = diagram.count(of: destination)
            label(count, labelLines(for: destination, isSingle: count == 1), bar, to: &page)
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
  private func label(_ count: Int, _ lines: [Line], _ bar: SankeyLayout.Bar, to page: inout HTMLWriter) {
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

  private func drawing(_ layout: SankeyLayout, to page: inout HTMLWriter) {
    let name = diagram.axis.rawValue
    let attributes: HTMLWriter.Attributes = [
      "width": "100%", "height": Self.number(layout.height), "role": "img",
      "aria-labelledby": "\(name)-title \(name)-description",
    ]
    page.element("svg", attributes) { page in
      page.element("title", ["id": "\(name)-title"], caption)
      page.element("desc", ["id": "\(name)-description"], description)
      page.element("defs") { page in
        pattern(.stays, size: 7, to: &page) { $0.voidElement("path", ["d": "M-1 8L8 -1M-2 2L2 -2M5 9L9 5"]) }
        pattern(.lost, size: 6, to: &page) { $0.voidElement("circle", ["cx": "3", "cy": "3", "r": "1.3"]) }
        pattern(.gone, size: 5, to: &page) { $0.voidElement("path", ["d": "M0 2.5H5"]) }
      }
      for (index, band) in layout.bands.enumerated() { draw(band, index, of: layout.height, to: &page) }
      for (_, bar) in layout.origins { rectangle(bar, "bar", at: "0", to: &page) }
      page.element("g", ["transform": "translate(-\(Self.number(Self.barWidth)) 0)"]) { page in
        for (destination, bar) in layout.destinations {
          rectangle(bar, "bar \(destination.rawValue)", at: "100%", to: &page)
        }
      }
    }
  }

  private func pattern(
    _ destination: SankeyDiagram.Destination, size: Int, to page: inout HTMLWriter, _ mark: HTMLWriter.Body
  ) {
    let attributes: HTMLWriter.Attributes = [
      "id": "\(diagram.axis.rawValue)-\(destination.rawValue)", "class": destination.rawValue, "width": "\(size)",
      "height": "\(size)",
      "patternUnits": "userSpaceOnUse",
    ]
    page.element("pattern", attributes) { page in
      page.voidElement("rect", ["width": "\(size)", "height": "\(size)"])
      mark(&page)
    }
  }

  /// Draws a band: an area of the size of the drawing, clipped with fractions of its width and height. As a result,
  /// the band grows with the column, but the pattern does not.
  private func draw(_ band: SankeyLayout.Band, _ index: Int, of height: Double, to page: inout HTMLWriter) {
    func fraction(_ y: Double) -> String { Self.fraction(y / height) }
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
    let name = band.flow.destination.rawValue
    if band.flow.destination == .moves {
      page.voidElement(
        "rect", ["class": "band \(name)", "width": "100%", "height": "100%", "clip-path": "url(#\(clipPath))"])
    } else {
      page.voidElement(
        "rect",
        [
          "class": "band \(name)", "width": "100%", "height": "100%", "clip-path": "url(#\(clipPath))",
          "fill": "url(#\(diagram.axis.rawValue)-\(name))",
        ])
    }
  }

  private func rectangle(_ bar: SankeyLayout.Bar, _ style: String, at x: String, to page: inout HTMLWriter) {
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

/// The vertical positions of the diagram's parts, in CSS pixels from the top.
///
/// Only heights are calculated. They do not depend on a font, because labels have lines of a fixed height. The browser
/// determines the widths of the columns.
struct SankeyLayout: Sendable {
  /// The height of all flows together.
  static let totalHeight = 200.0
  /// The minimum thickness of a flow.
  static let minimumThickness = 3.0
  /// The height of a label's line.
  static let lineHeight = 16.0
  /// The gap between two bars.
  static let gap = 10.0

  /// The vertical position of a bar.
  struct Bar: Sendable {
    let top: Double
    let height: Double
    /// The height of the bar or of its label, whichever is larger.
    let slotHeight: Double
    var middle: Double { top + height / 2 }
  }

  /// The shape of a flow: its upper edge at both bars, and its thickness.
  struct Band: Sendable {
    let flow: SankeyDiagram.Flow
    let start: Double
    let end: Double
    let thickness: Double
  }

  let height: Double
  let origins: [(origin: SankeyDiagram.Origin, bar: Bar)]
  let destinations: [(destination: SankeyDiagram.Destination, bar: Bar)]
  let bands: [Band]

  init(_ diagram: SankeyDiagram) {
    let total = max(1, diagram.flows.reduce(0) { $0 + $1.count })
    func thickness(_ flow: SankeyDiagram.Flow) -> Double {
      max(Self.minimumThickness, Self.totalHeight * Double(flow.count) / Double(total))
    }
    func barHeight(where isIncluded: (SankeyDiagram.Flow) -> Bool) -> Double {
      diagram.flows.filter(isIncluded).reduce(0) { $0 + thickness($1) }
    }
    let originSizes = diagram.origins.map { origin in
      (bar: barHeight { $0.origin == origin }, label: Self.labelHeight(of: origin.lines.count))
    }
    let destinationSizes = diagram.destinations.map { destination in
      (bar: barHeight { $0.destination == destination }, label: Self.labelHeight(of: Self.destinationLineCount))
    }
    let leftHeight = Self.height(of: originSizes)
    let rightHeight = Self.height(of: destinationSizes)
    let height = max(leftHeight, rightHeight)
    let originBars = Self.bars(originSizes, from: (height - leftHeight) / 2)
    let destinationBars = Self.bars(destinationSizes, from: (height - rightHeight) / 2)

    // The flows of a bar are below each other, so each one starts where the one above it ends.
    var nextStarts = Dictionary(uniqueKeysWithValues: zip(diagram.origins, originBars.map(\.top)))
    var nextEnds = Dictionary(uniqueKeysWithValues: zip(diagram.destinations, destinationBars.map(\.top)))
    bands = diagram.flows.map { flow in
      let start = nextStarts[flow.origin, default: 0]
      let end = nextEnds[flow.destination, default: 0]
      nextStarts[flow.origin] = start + thickness(flow)
      nextEnds[flow.destination] = end + thickness(flow)
      return Band(flow: flow, start: start, end: end, thickness: thickness(flow))
    }
    self.height = height
    origins = zip(diagram.origins, originBars).map { (origin: $0, bar: $1) }
    destinations = zip(diagram.destinations, destinationBars).map { (destination: $0, bar: $1) }
  }

  /// The number of lines in the label of an outcome: a verb and a name.
  static let destinationLineCount = 2

  /// Returns the height of a label: its lines, and one more line for the count on a narrow screen.
  static func labelHeight(of lines: Int) -> Double { lineHeight * Double(lines + 1) }

  /// The heights of a bar and of its label.
  private typealias Size = (bar: Double, label: Double)

  private static func height(of sizes: [Size]) -> Double {
    sizes.reduce(0) { $0 + max($1.bar, $1.label) } + gap * Double(max(0, sizes.count - 1))
  }

  /// Returns bars below each other. Each is centered in the height that it or its label needs.
  private static func bars(_ sizes: [Size], from top: Double) -> [Bar] {
    var top = top
    return sizes.map { size in
      let slotHeight = max(size.bar, size.label)
      defer { top += slotHeight + gap }
      return Bar(top: top + (slotHeight - size.bar) / 2, height: size.bar, slotHeight: slotHeight)
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
