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

  /// The shape of a flow.
  struct Band: Sendable {
    let flow: SankeyDiagram.Flow
    /// The upper edge at the origin's bar.
    let start: Double
    /// The upper edge at the destination's bar.
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
    self.height = height
    origins = zip(diagram.origins, originBars).map { (origin: $0, bar: $1) }
    destinations = zip(diagram.destinations, destinationBars).map { (destination: $0, bar: $1) }
    bands = Self.bands(of: diagram, from: originBars, to: destinationBars, thickness: thickness)
  }

  /// Returns the shapes of a diagram's flows. The flows of a bar are below each other, so each flow starts where
  /// the flow above it ends.
  private static func bands(
    of diagram: SankeyDiagram, from originBars: [Bar], to destinationBars: [Bar],
    thickness: (SankeyDiagram.Flow) -> Double
  ) -> [Band] {
    var nextStarts = Dictionary(uniqueKeysWithValues: zip(diagram.origins, originBars.map(\.top)))
    var nextEnds = Dictionary(uniqueKeysWithValues: zip(diagram.destinations, destinationBars.map(\.top)))
    return diagram.flows.map { flow in
      let start = nextStarts[flow.origin, default: 0]
      let end = nextEnds[flow.destination, default: 0]
      nextStarts[flow.origin] = start + thickness(flow)
      nextEnds[flow.destination] = end + thickness(flow)
      return Band(flow: flow, start: start, end: end, thickness: thickness(flow))
    }
  }

  /// The number of lines in the label of a destination: a verb and a name.
  static let destinationLineCount = 2

  /// Returns the height of a label: its lines, and one more line for the count on a narrow screen.
  static func labelHeight(of lines: Int) -> Double { lineHeight * Double(lines + 1) }

  /// The heights of a bar and of its label.
  private typealias Size = (bar: Double, label: Double)

  private static func height(of sizes: [Size]) -> Double {
    sizes.reduce(0) { $0 + max($1.bar, $1.label) } + gap * Double(max(0, sizes.count - 1))
  }

  /// Returns bars below each other. Each bar is centered in its slot, which is as high as the bar or its label.
  private static func bars(_ sizes: [Size], from top: Double) -> [Bar] {
    var top = top
    return sizes.map { size in
      let slotHeight = max(size.bar, size.label)
      defer { top += slotHeight + gap }
      return Bar(top: top + (slotHeight - size.bar) / 2, height: size.bar, slotHeight: slotHeight)
    }
  }
}
