import KeyhaulKit
import Reports

extension Inspection {
  /// The most domains that are shown unless all are asked for.
  private static let shortSpread = 5

  /// The largest domains, each with the app that it is of, where the backup names it. Nothing for a single domain.
  func domainRows(_ showsAll: Bool, _ style: TextStyle) -> [(String, String)] {
    guard let domains, domains.count > 1 else { return [] }
    let apps = InstalledApps.names(in: archive)
    let shown = showsAll ? domains[...] : domains.prefix(Self.shortSpread)
    var texts = shown.map { domain in
      let app = domain.identifier.flatMap { identifier in
        apps[String(identifier)].flatMap { $0 == identifier ? nil : " (\($0))" }
      }
      let missing = domain.missingCount == 0 ? "" : ", \(Amounts.grouped(domain.missingCount)) missing"
      return "\(domain.name)\(app ?? ""): \(Amounts.count(domain.fileCount, "file")), "
        + "\(Amounts.bytes(domain.storedByteCount))\(missing)"
    }
    let hidden = domains.count - shown.count
    if hidden > 0 { texts.append("\(style.ellipsis) \(Amounts.grouped(hidden)) more (-v shows all)") }
    return texts.enumerated().map { ($0.offset == 0 ? "domains" : "", $0.element) }
  }

  /// Whether nothing of it opens anywhere.
  var isKeybagUnusable: Bool { findings.contains(where: \.leavesNoKeybag) }

  /// What leads where most items go nowhere else: "Most of its items, 14 of 18, are of this device only: …".
  var boundText: String? {
    guard let contents, contents.total > 0, unbound == nil else { return nil }
    let maker = archive.device.name ?? "the source device"
    let total = Amounts.count(contents.total, "item")
    if isKeybagUnusable { return "Its keybag is unusable: none of its \(total) can be decrypted, on any device." }
    guard archive.isEncrypted else {
      let verb = contents.total == 1 ? "goes" : "go"
      return contents.secretOnly > 0 ? nil : "No password: its \(total) \(verb) back only to \(maker)."
    }
    guard contents.thisDeviceOnly * 2 > contents.total else { return nil }
    let (few, are) = (Amounts.grouped(contents.thisDeviceOnly), contents.thisDeviceOnly == 1 ? "is" : "are")
    return contents.thisDeviceOnly == contents.total
      ? "All of its items (\(few)) \(are) this-device-only: only \(maker) can restore them."
      : "Most of its items (\(few) of \(total)) \(are) this-device-only: only \(maker) can restore them."
  }

  /// "3 device-bound: 2 generic (when unlocked, this device), 1 key (…)", for each reason; `nil` where all open. What the
  /// items are called, and in which access groups they are, is sealed with them.
  var sealedText: String? {
    let groups = SealedItems(opened).groups
    guard !groups.isEmpty else { return nil }
    return Reason.allCases.compactMap { reason in
      let own = groups.filter { $0.reason == reason }
      guard !own.isEmpty else { return nil }
      let parts = own.map { group in
        "\(Amounts.grouped(group.count)) \(ItemText.kind(group.kind)) (\(ItemText.protection(group.protection)))"
      }
      let count = own.reduce(0) { $0 + $1.count }
      return "\(Amounts.grouped(count)) \(reason.rawValue): \(parts.joined(separator: ", "))"
    }.joined(separator: "; ")
  }
}
