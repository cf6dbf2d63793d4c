public import KeyhaulKit

/// Four restores compared, as a page for people: with and without a password, to the same device and to another; and what
/// to do before the phone is wiped, to print and to tick off.
public struct ComparisonPage: HTMLPage {
  let comparison: MigrationComparison
  let document: PlanDocument
  let apps: AppDirectory
  let maker: MakerItems?
  let words: CommandWords
  let program: String

  /// Creates the page of a comparison of restores.
  ///
  /// - Parameters:
  ///   - comparison: What the four restores would bring.
  ///   - document: The plan that is compared with the other three, as it is saved: where from and where to.
  ///   - apps: What people call the apps, as far as the backup or the device knows.
  ///   - maker: What the device that made the backup has besides, where it was asked.
  ///   - sourceArgument: What the person types for the source; `nil` where it came from a stream.
  ///   - targetArgument: What the person types for the target; `nil` where nobody knows.
  ///   - program: Name and version of the program that makes the page.
  public init(
    _ comparison: MigrationComparison, of document: PlanDocument, apps: AppDirectory, maker: MakerItems? = nil,
    sourceArgument: String?, targetArgument: String?, program: String
  ) {
    self.maker = maker
    self.comparison = comparison
    self.document = document
    self.apps = apps
    self.program = program
    words = CommandWords(document, source: sourceArgument, target: targetArgument)
  }

  var current: RestoreSetting { comparison.current }
  var isOfBackup: Bool { document.source.kind == .archive }

  /// The best that a backup can bring to the device at hand.
  var best: RestoreSetting { RestoreSetting(hasPassword: true, onSameDevice: current.onSameDevice) }

  /// The device that the items come from, as far as anybody knows.
  var phone: String {
    switch document.source.kind {
    case .device, .dump: document.source.name
    case .archive: document.source.deviceName ?? "the old phone"
    }
  }

  var verdict: String {
    let sentence = comparison.advice.sentence(for: current)
    return sentence.prefix(1).uppercased() + sentence.dropFirst() + "." + (maker?.absence.map { " \($0)." } ?? "")
  }

  /// The page as one document, the same for the same comparison.
  ///
  /// - Throws: `.cryptoFailed` where the style sheet's digest cannot be computed.
  public func html() throws(DataProtectionError) -> String {
    let title = "Four ways to restore \(Markup.shortened(document.source.name))"
    return try ReportPage(title: title, program: program, style: PageStyle.comparison).html(
      body: { page in
        heading(&page)
        FindingSection(document.findings).write(to: &page)
        RestoreTable(self).write(to: &page)
        WaysTable(comparison).write(to: &page)
        AbsentSection(maker: maker).write(to: &page)
        checklist.write(to: &page)
        PageTable(self).write(to: &page)
      },
      footer: { page in
        page.element("p") { page in
          page.words("Compared \(DateWords.words(document.made)). \(isOfBackup ? "Backup" : "Device") ")
          page.element("code", document.source.digest)
          page.words(".")
        }
      })
  }

  private func heading(_ page: inout Markup) {
    page.element("header") { page in
      page.element("h1") { page in
        page.words("Four ways to restore ")
        page.name(document.source.name)
      }
      page.element("p", ["class": "verdict"], verdict)
      page.element("p", ["class": "facts"]) { page in
        page.words(isOfBackup ? "From " : "From the device ")
        page.element("strong") { $0.name(document.source.name) }
        page.words(
          ", \(Amounts.count(comparison.items.count, "item")), \(document.source.encrypted ? "with" : "without") a password"
            + (isOfBackup ? ". To " : ", as a backup made now would contain them. To "))
        page.element("strong") { $0.name(document.target.name) }
        page.words(current.onSameDevice ? ", the source device." : ", another device.")
        page.words(
          " The numbers count the items that arrive, whether or not the target already has them. Nothing has "
            + "been changed yet.")
      }
    }
  }

  // MARK: Before the phone is wiped

  /// A backup that brings all it can stays; where a password would bring more, or there is no backup yet, one is made.
  var checklist: Checklist {
    let needsNew =
      !isOfBackup || document.findings.obstacle != nil
      || (!current.hasPassword && comparison.advice.gainedByPassword > 0)
    return WipeChecklist(
      phone: phone, target: document.target.name, isReturn: current.onSameDevice,
      backup: needsNew
        ? .missing(command: Commands.backup(of: words.oldDevice, to: words.newBackup)) : .good(word: words.source),
      isOfBackup: isOfBackup,
      losses: comparison.items.compactMap { item in
        item[best].reason.map { .init(index: item.index, identity: item.identity, reason: $0) }
      } + WipeChecklist.losses(of: maker, after: comparison.items.count), apps: apps
    ).checklist
  }
}
