import KeychainFormats

/// What stands beside the bars of the picture, and the room that it needs there.
struct FlowLabels {
  /// A line of a label: a count, or none, and words.
  struct Line {
    var count: String?
    var words: String

    var width: Double { (count.map { LabelWidth.of($0, isBold: true) } ?? 0) + LabelWidth.of(words) }
  }

  let origins: [(origin: Flow.Origin, lines: [Line])]
  let ends: [(end: Flow.End, lines: [Line])]

  /// - Parameter words: What stands at an end; names in it are cut to the room that is given.
  init(_ flow: Flow, _ form: FlowLayout.Form, words: (Flow.End, Double) -> [String]) {
    origins = flow.origins.map { (origin: $0, lines: Self.labelled(flow.count(of: $0), $0.lines, form)) }
    ends = flow.ends.map { end in
      (end: end, lines: Self.labelled(flow.count(of: end), words(end, form.longestName), form))
    }
  }

  var room: FlowLayout.Room {
    FlowLayout.Room(
      left: origins.flatMap { $0.lines.map(\.width) }.max() ?? 0,
      right: ends.flatMap { $0.lines.map(\.width) }.max() ?? 0)
  }

  private static func labelled(_ count: Int, _ words: [String], _ form: FlowLayout.Form) -> [Line] {
    let count = Amounts.grouped(count)
    if form.isCountAlone { return [Line(count: count, words: "")] + words.map { Line(words: $0) } }
    return words.enumerated().map { $0 == 0 ? Line(count: count, words: " " + $1) : Line(words: $1) }
  }
}
