/// Where the parts of the picture of a flow stand, from the top, in CSS pixels.
///
/// Only heights are laid out here, none of which depends on a font: labels have lines of a fixed height, and how wide
/// the columns are is the browser's to decide, which knows its letters.
struct FlowLayout: Sendable {
  /// Heights of all items together, of the minimumThickness stream, of a line of a label, and between two bars.
  static let flowHeight = 200.0
  static let minimumThickness = 3.0
  static let lineHeight = 16.0
  static let gap = 10.0

  struct Bar: Sendable {
    let top: Double
    let height: Double
    /// What the bar or its label needs, whichever is higher.
    let room: Double
    var middle: Double { top + height / 2 }
  }

  /// A stream's course: its upper edge at both bars, and how thick it is.
  struct Band: Sendable {
    let stream: Flow.Stream
    let start: Double
    let end: Double
    let thickness: Double
  }

  let height: Double
  let origins: [(origin: Flow.Origin, bar: Bar)]
  let ends: [(end: Flow.End, bar: Bar)]
  let bands: [Band]

  init(_ flow: Flow) {
    let total = max(1, flow.streams.reduce(0) { $0 + $1.count })
    func thickness(_ stream: Flow.Stream) -> Double {
      max(Self.minimumThickness, Self.flowHeight * Double(stream.count) / Double(total))
    }
    let originSizes = flow.origins.map { origin in
      (
        height: flow.streams.reduce(0) { $0 + ($1.origin == origin ? thickness($1) : 0) },
        label: Self.labelHeight(of: origin.lines.count)
      )
    }
    let endSizes = flow.ends.map { end in
      (
        height: flow.streams.reduce(0) { $0 + ($1.end == end ? thickness($1) : 0) },
        label: Self.labelHeight(of: FlowLayout.linesOfAnEnd)
      )
    }
    let (leftHeight, rightHeight) = (Self.height(of: originSizes), Self.height(of: endSizes))
    let height = max(leftHeight, rightHeight)
    let originBars = Self.bars(originSizes, from: (height - leftHeight) / 2)
    let endBars = Self.bars(endSizes, from: (height - rightHeight) / 2)

    var startOf = Dictionary(uniqueKeysWithValues: zip(flow.origins, originBars.map(\.top)))
    var endOf = Dictionary(uniqueKeysWithValues: zip(flow.ends, endBars.map(\.top)))
    bands = flow.streams.map { stream in
      let start = startOf[stream.origin, default: 0]
      let end = endOf[stream.end, default: 0]
      startOf[stream.origin] = start + thickness(stream)
      endOf[stream.end] = end + thickness(stream)
      return Band(stream: stream, start: start, end: end, thickness: thickness(stream))
    }
    self.height = height
    origins = zip(flow.origins, originBars).map { (origin: $0, bar: $1) }
    ends = zip(flow.ends, endBars).map { (end: $0, bar: $1) }
  }

  /// A verb and a name.
  static let linesOfAnEnd = 2

  /// The room of a label: its lines, and one for the count where the screen is narrow.
  static func labelHeight(of lines: Int) -> Double { lineHeight * Double(lines + 1) }

  private typealias Size = (height: Double, label: Double)

  private static func height(of bars: [Size]) -> Double {
    bars.reduce(0) { $0 + max($1.height, $1.label) } + gap * Double(max(0, bars.count - 1))
  }

  /// Bars below each other, each in the middle of the room that it or its label needs.
  private static func bars(_ sizes: [Size], from top: Double) -> [Bar] {
    var top = top
    return sizes.map { size in
      let room = max(size.height, size.label)
      defer { top += room + gap }
      return Bar(top: top + (room - size.height) / 2, height: size.height, room: room)
    }
  }
}
