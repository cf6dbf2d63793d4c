/// Where the parts of the picture of a flow stand, in the picture's own units.
struct FlowLayout: Sendable {
  /// The measures of one form of the picture.
  struct Form: Sendable {
    /// Tells the identifiers of two pictures in one page apart.
    let name: String
    /// How wide the picture is, and the left edges of the two columns of bars, where the labels need no more room.
    let width: Double
    let left: Double
    let right: Double
    let barWidth: Double
    /// Heights of all items together, of the thinnest stream, and of the room that a label needs.
    let flowHeight: Double
    let thinnest: Double
    let labelHeight: Double
    let gap: Double
    /// The most room that a name takes; the rest of it is cut.
    let longestName: Double
    /// The least room between the columns of bars.
    let leastStream: Double
    /// Whether the count has a line of its own.
    let isCountAlone: Bool
    let lineHeight: Double

    /// For screens and paper.
    static let wide = Form(
      name: "wide", width: 720, left: 142, right: 566, barWidth: 9, flowHeight: 200, thinnest: 3, labelHeight: 36,
      gap: 12, longestName: 133, leastStream: 240, isCountAlone: false, lineHeight: 16)
    /// For a phone held upright, where it is shown at its own size.
    static let narrow = Form(
      name: "narrow", width: 343, left: 118, right: 236, barWidth: 8, flowHeight: 210, thinnest: 3, labelHeight: 48,
      gap: 10, longestName: 94, leastStream: 90, isCountAlone: true, lineHeight: 15)
  }

  /// How much the labels on either side take.
  struct Room: Sendable {
    var left = 0.0
    var right = 0.0
  }

  /// Between a label and its bar, and between a label and the picture's edge.
  static let labelGap = 10.0
  static let margin = 2.0

  struct Bar: Sendable {
    let top: Double
    let height: Double
    var middle: Double { top + height / 2 }
  }

  /// A stream's course: its upper edge at both bars, and how thick it is.
  struct Band: Sendable {
    let stream: Flow.Stream
    let start: Double
    let end: Double
    let thickness: Double
  }

  let form: Form
  let width: Double
  let height: Double
  /// Left edges of the two columns of bars.
  let left: Double
  let right: Double
  let origins: [(origin: Flow.Origin, bar: Bar)]
  let ends: [(end: Flow.End, bar: Bar)]
  let bands: [Band]

  /// - Parameter room: The picture grows where its labels and streams would not have the room that they need.
  init(_ flow: Flow, _ form: Form, room: Room = Room()) {
    let besidesLeft = Self.margin + room.left + Self.labelGap
    let besidesRight = form.barWidth + Self.labelGap + room.right + Self.margin
    let left = max(form.left, besidesLeft)
    let width = max(form.width, left + form.barWidth + form.leastStream + besidesRight)
    self.left = left
    self.width = width
    right = min(width - form.width + form.right, width - besidesRight)
    let total = max(1, flow.streams.reduce(0) { $0 + $1.count })
    let thickness: (Flow.Stream) -> Double = { max(form.thinnest, form.flowHeight * Double($0.count) / Double(total)) }
    let originHeights = flow.origins.map { origin in
      flow.streams.reduce(0) { $0 + ($1.origin == origin ? thickness($1) : 0) }
    }
    let endHeights = flow.ends.map { end in
      flow.streams.reduce(0) { $0 + ($1.end == end ? thickness($1) : 0) }
    }
    let leftHeight = Self.height(of: originHeights, form)
    let rightHeight = Self.height(of: endHeights, form)
    let height = max(leftHeight, rightHeight)
    let originBars = Self.bars(originHeights, from: (height - leftHeight) / 2, form)
    let endBars = Self.bars(endHeights, from: (height - rightHeight) / 2, form)

    var startOf = Dictionary(uniqueKeysWithValues: zip(flow.origins, originBars.map(\.top)))
    var endOf = Dictionary(uniqueKeysWithValues: zip(flow.ends, endBars.map(\.top)))
    bands = flow.streams.map { stream in
      let start = startOf[stream.origin, default: 0]
      let end = endOf[stream.end, default: 0]
      startOf[stream.origin] = start + thickness(stream)
      endOf[stream.end] = end + thickness(stream)
      return Band(stream: stream, start: start, end: end, thickness: thickness(stream))
    }
    self.form = form
    self.height = height
    origins = zip(flow.origins, originBars).map { (origin: $0, bar: $1) }
    ends = zip(flow.ends, endBars).map { (end: $0, bar: $1) }
  }

  private static func height(of bars: [Double], _ form: Form) -> Double {
    bars.reduce(0) { $0 + max($1, form.labelHeight) } + form.gap * Double(max(0, bars.count - 1))
  }

  /// Bars below each other, each in the middle of the room that it or its label needs.
  private static func bars(_ heights: [Double], from top: Double, _ form: Form) -> [Bar] {
    var top = top
    return heights.map { height in
      let room = max(height, form.labelHeight)
      defer { top += room + form.gap }
      return Bar(top: top + (room - height) / 2, height: height)
    }
  }
}
