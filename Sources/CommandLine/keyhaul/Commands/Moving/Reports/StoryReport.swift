import KeyhaulKit
import Reports

/// `why` (format `item-story/1`): one item's story in full; of several, a list to choose from.
struct StoryReport: Report {
  let stories: [ItemStory]
  let source: MoveSource
  let target: String?

  func lines(style: TextStyle, showsAll: Bool) -> [String] {
    if stories.count == 1 || showsAll {
      let texts = stories.map { StoryText(story: $0, source: source, target: target).lines(style: style) }
      return Array(texts.joined(separator: [""])) + source.unseenLines(style: style)
    }
    var lines =
      [style.painted("\(Amounts.count(stories.count, "item")) match:", .bold)]
      + table(isShort: false).lines(style: style) { table(isShort: true) }
    if stories.count > ReportItemTable.shortGroup {
      lines.append("\(style.ellipsis) \(Amounts.grouped(stories.count - ReportItemTable.shortGroup)) more")
    }
    return lines
      + WordWrap.lines(
        of: "More attributes, or --item N, select one of them; -v shows all.", columns: style.width)
      + source.unseenLines(style: style)
  }

  /// The list to choose from. Where names would be cut, classes go by their codes.
  private func table(isShort: Bool) -> Table {
    var table = Table([
      .init("ITEM", rightAligned: true), .init("KIND"), .init("NAME", flexible: true),
      .init(ItemText.protectionTitle(isShort: isShort)), .init("OUTCOME"),
    ])
    for story in stories.prefix(ReportItemTable.shortGroup) {
      let name = story.identity.isSealed ? "(encrypted)" : ItemText.name(story.identity)
      table.add([
        story.index.map(String.init) ?? "–", ItemText.kind(story.identity.kind), name,
        ItemText.protection(story.protection, isShort: isShort), StoryText.outcome(of: story),
      ])
    }
    return table
  }

  var json: JSONValue {
    StoryDocument(stories: stories, source: source.document, target: target, dump: source.statement?.ofPlan).json
  }
}
