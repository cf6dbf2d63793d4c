/// The picture of a move in two views, one of which is shown: by the app or the kind of the items, and by when they may
/// be read. Nothing but radio buttons and style rules chooses; paper has the one that is chosen.
struct FlowViews {
  let figures: [(axis: Flow.Axis, figure: FlowFigure)]

  func write(to page: inout Markup) {
    page.newLine()
    page.element("fieldset", ["class": "views"]) { page in
      page.element("legend", ["class": "unseen"], "Show where the items go")
      for (index, view) in figures.enumerated() {
        let id = "by-\(view.axis.rawValue)"
        if index == 0 {
          page.void("input", ["type": "radio", "name": "view", "id": id, "checked": "checked"])
        } else {
          page.void("input", ["type": "radio", "name": "view", "id": id])
        }
        page.element("label", ["for": id], "by \(view.axis.words)")
      }
      for view in figures { view.figure.write(to: &page) }
    }
  }
}
