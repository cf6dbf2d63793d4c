import KeychainFormats
import Migration

/// The picture of the move: streams of items from the protection classes on the left to where they end on the right,
/// drawn twice, for wide and for narrow screens. Patterns and words say what the colors say.
struct FlowFigure {
  private let flow: Flow
  private let source: String
  private let target: String
  private let isReturn: Bool

  /// - Parameters:
  ///   - source: The name of the device that the items come from.
  ///   - target: That of the device that they go to.
  ///   - isReturn: Whether the two are one device.
  init(_ flow: Flow, source: String, target: String, isReturn: Bool) {
    self.flow = flow
    self.source = source
    self.target = target
    self.isReturn = isReturn
  }

  func write(to page: inout Markup) {
    page.newLine()
    page.element("figure", ["class": "flow"]) { page in
      page.element("figcaption", caption)
      for form in [FlowLayout.Form.wide, .narrow] { picture(form, to: &page) }
    }
  }

  private var caption: String {
    let count = flow.streams.reduce(0) { $0 + ($1.origin == .onTarget ? 0 : $1.count) }
    return "Where \(count == 1 ? "the item goes" : "the \(Amounts.grouped(count)) items go"), by when they may be read"
  }

  private func picture(_ form: FlowLayout.Form, to page: inout Markup) {
    let labels = FlowLabels(flow, form) { words(for: $0, room: $1) }
    let layout = FlowLayout(flow, form, room: labels.room)
    let (title, description) = ("\(form.name)-title", "\(form.name)-description")
    let attributes: Markup.Attributes = [
      "class": form.name, "viewBox": "0 0 \(Self.number(layout.width)) \(Self.number(layout.height + 8))",
      "role": "img",
      "aria-labelledby": "\(title) \(description)",
    ]
    page.element("svg", attributes) { page in
      page.element("title", ["id": title], caption)
      page.element("desc", ["id": description], self.description)
      patterns(form, to: &page)
      page.element("g", ["transform": "translate(0 4)"]) { page in
        for band in layout.bands { draw(band, layout, to: &page) }
        for ((_, bar), (_, lines)) in zip(layout.origins, labels.origins) {
          rectangle(x: layout.left, bar, form, style: "bar", to: &page)
          label(lines, x: layout.left - FlowLayout.labelGap, middle: bar.middle, anchor: "end", form, to: &page)
        }
        for ((end, bar), (_, lines)) in zip(layout.ends, labels.ends) {
          rectangle(x: layout.right, bar, form, style: "bar \(end.rawValue)", to: &page)
          let x = layout.right + form.barWidth + FlowLayout.labelGap
          label(lines, x: x, middle: bar.middle, anchor: "start", form, to: &page)
        }
      }
    }
  }

  /// The picture in sentences, for people who cannot see it.
  private var description: String {
    let parts = flow.streams.map { stream in
      "\(Amounts.count(stream.count, "item")) \(stream.origin.lines.joined(separator: ", ")): "
        + words(for: stream.end).joined(separator: " ")
    }
    return parts.joined(separator: "; ") + "."
  }

  /// - Parameter room: What a name may take; as much as it needs without one.
  private func words(for end: Flow.End, room: Double? = nil) -> [String] {
    func name(_ name: String) -> String {
      guard let room else { return Markup.shortened(name) }
      return LabelWidth.fitted(name, to: room)
    }
    let (source, target) = (name(source), name(target))
    return switch end {
    case .moves: [isReturn ? "come back to" : "move to", target]
    case .stays: ["stay with", source]
    case .lost: ["cannot", "be read"]
    case .gone: ["removed from", target]
    }
  }

  // MARK: Drawing

  private func patterns(_ form: FlowLayout.Form, to page: inout Markup) {
    page.element("defs") { page in
      pattern(.stays, form, size: 7, to: &page) { $0.void("path", ["d": "M-1 8L8 -1M-2 2L2 -2M5 9L9 5"]) }
      pattern(.lost, form, size: 6, to: &page) { $0.void("circle", ["cx": "3", "cy": "3", "r": "1.3"]) }
      pattern(.gone, form, size: 5, to: &page) { $0.void("path", ["d": "M0 2.5H5"]) }
    }
  }

  private func pattern(
    _ end: Flow.End, _ form: FlowLayout.Form, size: Int, to page: inout Markup, _ mark: Markup.Body
  ) {
    let attributes: Markup.Attributes = [
      "id": "\(form.name)-\(end.rawValue)", "class": end.rawValue, "width": "\(size)", "height": "\(size)",
      "patternUnits": "userSpaceOnUse",
    ]
    page.element("pattern", attributes) { page in
      page.void("rect", ["width": "\(size)", "height": "\(size)"])
      mark(&page)
    }
  }

  private func draw(_ band: FlowLayout.Band, _ layout: FlowLayout, to page: inout Markup) {
    let form = layout.form
    let (x0, x1) = (layout.left + form.barWidth, layout.right)
    let middle = (x0 + x1) / 2
    let n = Self.number
    let path =
      "M\(n(x0)) \(n(band.start))C\(n(middle)) \(n(band.start)) \(n(middle)) \(n(band.end)) \(n(x1)) \(n(band.end))"
      + "v\(n(band.thickness))C\(n(middle)) \(n(band.end + band.thickness)) \(n(middle)) "
      + "\(n(band.start + band.thickness)) \(n(x0)) \(n(band.start + band.thickness))Z"
    let name = band.stream.end.rawValue
    if band.stream.end == .moves {
      page.void("path", ["class": "band \(name)", "d": path])
    } else {
      page.void("path", ["class": "band \(name)", "d": path, "fill": "url(#\(form.name)-\(name))"])
    }
  }

  private func rectangle(
    x: Double, _ bar: FlowLayout.Bar, _ form: FlowLayout.Form, style: String, to page: inout Markup
  ) {
    page.void(
      "rect",
      [
        "class": style, "x": Self.number(x), "y": Self.number(bar.top), "width": Self.number(form.barWidth),
        "height": Self.number(bar.height), "rx": "2",
      ])
  }

  private func label(
    _ lines: [FlowLabels.Line], x: Double, middle: Double, anchor: String, _ form: FlowLayout.Form,
    to page: inout Markup
  ) {
    // The capitals of the lines together stand in the middle.
    let top = middle + 4.5 - form.lineHeight * Double(lines.count - 1) / 2
    page.element("text", ["text-anchor": anchor]) { page in
      for (index, line) in lines.enumerated() {
        let y = Self.number(top + form.lineHeight * Double(index))
        page.element("tspan", ["x": Self.number(x), "y": y]) { page in
          if let count = line.count { page.element("tspan", ["class": "count"], count) }
          page.words(line.words)
        }
      }
    }
  }

  /// With one digit behind the point: more cannot be seen.
  private static func number(_ value: Double) -> String {
    let tenths = (value * 10).rounded()
    let text = String(tenths / 10)
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }
}
