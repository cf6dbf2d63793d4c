import ArchivedKeychain
import CommandSession
import KeychainFormats
import KeychainRules
import Migration
import VirtualDevice

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
    let whole = table(isShort: false)
    let table = whole.fits(style) ? whole : self.table(isShort: true)
    var lines = [style.painted("\(Amounts.count(stories.count, "item")) match:", .bold)] + table.lines(style: style)
    if stories.count > ItemLines.shortGroup {
      lines.append("\(style.ellipsis) \(Amounts.grouped(stories.count - ItemLines.shortGroup)) more")
    }
    return lines
      + WordWrap.lines(
        of: "More attributes, or --item N, mean one of them; -v tells all.", columns: style.width)
      + source.unseenLines(style: style)
  }

  /// The list to choose from. Where names would be cut, classes go by their codes.
  private func table(isShort: Bool) -> Table {
    var table = Table([
      .init("ITEM", rightAligned: true), .init("KIND"), .init("NAME", flexible: true),
      .init(ItemText.protectionTitle(isShort: isShort)), .init("OUTCOME"),
    ])
    for story in stories.prefix(ItemLines.shortGroup) {
      let name = story.identity.isSealed ? "(sealed)" : ItemText.name(story.identity)
      table.add([
        story.index.map(String.init) ?? "–", ItemText.kind(story.identity.kind), name,
        ItemText.protection(story.protection, isShort: isShort), StoryText.outcome(of: story),
      ])
    }
    return table
  }

  var json: JSONValue {
    let document: JSONValue = [
      "format": "item-story/1", "source": source.document.json, "target": .text(target),
      "stories": .array(stories.map(Self.json)),
    ]
    return document.adding(source.unseenFields)
  }

  private static func json(_ story: ItemStory) -> JSONValue {
    var fields: [(String, JSONValue)] = [("index", story.index.map { .count($0) } ?? .null)]
    fields += JSONValue.identity(story.identity) + [("protection", .text(story.protection?.rawValue))]
    fields.append(
      (
        "readable",
        story.protection.map { protection in
          .object(
            [DeviceState.beforeFirstUnlock, .locked, .unlocked].map { state in
              (state.rawValue, .boolean(protection.isReadable(in: state)))
            })
        } ?? .null
      ))
    fields.append(
      (
        "restores",
        .array(
          RestoreSetting.allCases.compactMap { setting in
            story.prospects[setting].map {
              .object(ComparisonReport.fields(setting) + ComparisonReport.fields($0))
            }
          })
      ))
    fields.append(("here", here(story)))
    fields.append(("on_target", story.onTarget.map { PlanDocument.Item($0).json } ?? .null))
    fields.append(("do", .text(StoryText.advice(for: story))))
    return .object(fields)
  }

  /// What happened to it in this archive, or on this device.
  private static func here(_ story: ItemStory) -> JSONValue {
    switch story.place {
    case .archive, .device:
      guard let decision = story.decision, let reason = decision.outcome.reason else { return ["state": "opens"] }
      return .object(
        [("state", .string(decision.outcome.fate.rawValue)), ("reason", .string(reason.rawValue))]
          + (decision.detail.map { [("detail", .string($0))] } ?? []))
    case .deleted: return ["state": .string(ItemFate.staysBehind.rawValue), "reason": .string(Reason.deleted.rawValue)]
    case .missing(let device, let rule):
      return ["state": "not-in-archive", "device": .string(device), "reason": .text(rule?.rawValue)]
    case .targetOnly(let isRemoved):
      return ["state": "target-only", "removed": .boolean(isRemoved)]
    }
  }
}

extension ItemStory {
  /// Its place in the backup, or in the one that would be made now; `--item` takes it.
  var index: Int? {
    switch place {
    case .archive(let index), .device(let index): index
    case .deleted, .missing, .targetOnly: nil
    }
  }
}
