public import ArchivedKeychain
public import DataProtection
import KeychainFormats
public import Migration

/// A plan as one self-contained HTML file for people: what moves, what is lost and what to do about it.
///
/// A pure function of what it is given: no clock, no locale, no file; equal plans are equal pages.
public struct PlanPage: Sendable {
  let decisions: [MigrationPlan.Decision]
  let removed: [ItemIdentity]
  let policy: ExistingItemPolicy
  let source: PlanDocument.Source
  let target: PlanDocument.Target
  /// When the plan was made: RFC 3339.
  let made: String
  let program: String
  let appNames: [String: String]
  let counts: PlanCounts

  /// - Parameters:
  ///   - decisions: As they shall be shown: with other names in them where the page is for strangers.
  ///   - removed: Items of the target that are gone afterwards.
  ///   - made: When the plan was made, in RFC 3339.
  ///   - program: Name and version of the program that makes the page.
  ///   - appNames: What people call the app that an access group belongs to, as far as the backup knows.
  public init(
    decisions: [MigrationPlan.Decision], removed: [ItemIdentity], policy: ExistingItemPolicy, made: String,
    source: PlanDocument.Source, target: PlanDocument.Target, program: String, appNames: [String: String] = [:]
  ) {
    self.decisions = decisions
    self.removed = removed
    self.policy = policy
    self.made = made
    self.source = source
    self.target = target
    self.program = program
    self.appNames = appNames
    counts = PlanCounts(decisions, removed: removed.count)
  }

  public init(
    _ plan: MigrationPlan, made: String, source: PlanDocument.Source, target: PlanDocument.Target, program: String,
    appNames: [String: String] = [:]
  ) {
    self.init(
      decisions: plan.decisions, removed: plan.removed, policy: plan.policy, made: made, source: source,
      target: target, program: program, appNames: appNames)
  }

  /// The page, in UTF-8 where it is written to a file.
  ///
  /// - Throws: Where the digest of its style sheet, which its content policy names, cannot be computed.
  public func html() throws(DataProtectionError) -> String {
    let title = "Moving \(Markup.shortened(source.name)) to \(Markup.shortened(target.name))"
    return try ReportPage(title: title, program: program, style: PageStyle.plan).html(
      body: { page in
        heading(&page)
        tiles(&page)
        if !decisions.isEmpty || !removed.isEmpty { FlowFigure(self).write(to: &page) }
        LossSection(self).write(to: &page)
        SignInList(self).write(to: &page)
        PlanTable(self).write(to: &page)
        NextSteps(self).write(to: &page)
      },
      footer: { page in
        page.element("p") { page in
          page.words("Plan of \(PageDate.words(made)). Archive ")
          page.element("code", source.digest)
          page.words(", \(Markup.shortened(target.name)) at revision ")
          page.element("code", Markup.shortened(target.revision))
          page.words(".")
        }
      })
  }

  private func heading(_ page: inout Markup) {
    page.element("header") { page in
      page.element("h1") { page in
        page.words(target.sameDevice == true ? "Restoring to " : "Moving to ")
        page.name(target.name)
      }
      page.element("p", ["class": "verdict"], verdict)
      page.element("p", ["class": "facts"]) { page in
        page.words(source.kind == .archive ? "From " : "From the device ")
        page.element("strong") { $0.name(source.name) }
        if source.kind == .archive { page.words(origin) }
        page.words(source.encrypted ? ", with a password." : ", without a password.")
      }
      page.element("p", ["class": "facts"]) { page in
        page.words("To ")
        page.element("strong") { $0.name(target.name) }
        page.words(
          ": \(state), \(target.passcodeSet ? "passcode set" : "no passcode"), "
            + "\(Amounts.count(target.items, "item")). \(policyWords) Nothing has been changed yet.")
      }
    }
  }

  /// ", made 20 November 2026 at 18:04 UTC by old-phone"
  private var origin: String {
    let date = source.made.map { " " + PageDate.words($0) } ?? ""
    let device = source.deviceName.map { " by " + Markup.shortened($0) } ?? ""
    return date.isEmpty && device.isEmpty ? "" : ", made" + date + device
  }

  private var state: String { target.state == "before-first-unlock" ? "before first unlock" : target.state }

  private var policyWords: String {
    switch policy {
    case .replace: "What is there is replaced, as iOS does."
    case .merge: "What is there stays; of two with the same key the newer one wins."
    }
  }

  private func tiles(_ page: inout Markup) {
    page.newLine()
    let tiles = [
      ("moves", "+", counts.migrates, target.sameDevice == true ? "come back" : "will move"),
      ("stays", "<", counts.staysBehind, counts.staysBehind == 1 ? "stays behind" : "stay behind"),
      ("lost", "!", counts.unreadable, "cannot be read"),
      ("gone", "-", counts.removed, "removed there"),
    ]
    page.element("ul", ["class": "tiles", "aria-label": "Summary"]) { page in
      for (style, symbol, count, words) in tiles {
        page.element("li", ["class": count == 0 ? style + " none" : style]) { page in
          page.element("span", ["class": "symbol", "aria-hidden": "true"], symbol)
          page.element("b", Amounts.grouped(count))
          page.words(" " + words)
        }
      }
    }
  }
}
