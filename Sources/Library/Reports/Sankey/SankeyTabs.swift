/// Two diagrams of a move, by app or kind and by protection class. Radio buttons and style rules show one of them, on the
/// screen and in print.
struct SankeyTabs {
  let figures: [(axis: SankeyDiagram.Axis, figure: SankeyView)]

  func write(to page: inout HTMLWriter) {
    page.newLine()
    page.element("fieldset", ["class": "views"]) { page in
      page.element("legend", ["class": "unseen"], "Show where the items go")
      for (index, view) in figures.enumerated() {
        let id = "by-\(view.axis.rawValue)"
        if index == 0 {
          page.voidElement("input", ["type": "radio", "name": "view", "id": id, "checked": "checked"])
        } else {
          page.voidElement("input", ["type": "radio", "name": "view", "id": id])
        }
        page.element("label", ["for": id], "by \(view.axis.displayName)")
      }
      for view in figures { view.figure.write(to: &page) }
    }
  }
}
