import Backups
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Testing
import VirtualDevice

@testable import KeyhaulKit

/// The place where a test finds an example of a glossary term. Most examples are items of the fixture `every-rule`; an
/// example of damage needs a tampered backup. The switch is exhaustive, so a new term must be added here.
private enum TermSource {
  /// The term is the reason why a backup omits an item.
  case omitted
  /// The term is the outcome for an item in the plan of a backup for `every-rule-target`.
  case planned(password: String?, policy: ExistingItemPolicy)
  /// The term states what a replacing restore does with an item of `every-rule-target`: it removes or keeps the item.
  case target
  /// The term is reported for a tampered backup.
  case tampered(TamperedBackup)
  /// The term is the warning about the item `migrates-but-unusable`, if it is restored to the source device
  /// (`onSameDevice`) or to another one.
  case warned(onSameDevice: Bool)

  enum TamperedBackup {
    case changedByte
    case cutBlob
    case newVersion
    case classKeyRemoved
    case otherKeybag
    case brokenSeal
  }

  init(_ term: GlossaryTerm) {
    switch term {
    case .reason(let reason):
      switch reason {
      case .passcodeOnly, .hardwareKey, .systemBound, .needsAuthentication, .sharedGroup, .appClip, .deleted:
        self = .omitted
      case .deviceBound: self = .planned(password: TestSetup.password, policy: .replace)
      case .backupNotEncrypted: self = .planned(password: nil, policy: .replace)
      case .noClassKey: self = .tampered(.classKeyRemoved)
      case .tagMismatch: self = .tampered(.changedByte)
      case .malformed: self = .tampered(.cutBlob)
      case .unsupportedVersion: self = .tampered(.newVersion)
      }
    case .change: self = .planned(password: TestSetup.password, policy: .merge)
    case .warning(.migratesButUnusable): self = .warned(onSameDevice: false)
    case .warning(.useNotKnown): self = .warned(onSameDevice: true)
    case .inferredSynchronizable: self = .planned(password: TestSetup.password, policy: .merge)
    case .removed, .preserved: self = .target
    case .keybagMismatch: self = .tampered(.otherKeybag)
    case .sealBroken: self = .tampered(.brokenSeal)
    }
  }
}

@Suite("Coverage of glossary terms")
struct GlossaryTermCoverageTests {
  let setup: TestSetup
  let source: VirtualDevice
  let target: VirtualDevice

  init() throws {
    setup = try TestSetup(seed: "every term")
    source = try setup.bundled("every-rule")
    target = try setup.bundled("every-rule-target")
  }

  @Test("Every glossary term occurs in a fixture or a tampered backup", arguments: GlossaryTerm.allCases)
  func occurs(_ term: GlossaryTerm) throws {
    switch TermSource(term) {
    case .omitted: try checkOmission(term)
    case .planned(let password, let policy): try checkPlanned(term, password: password, policy: policy)
    case .target: try checkTarget()
    case .tampered(let tampering): try check(tampering, gives: term)
    case .warned(let onSameDevice): try checkWarned(term, onSameDevice: onSameDevice)
    }
  }

  private func checkWarned(_ term: GlossaryTerm, onSameDevice: Bool) throws {
    let path = try setup.backUp(source, password: TestSetup.password)
    let session = try (onSameDevice ? source : target).openTestSession()
    defer { session.invalidate() }
    let plan = try session.restore(setup.open(path, password: TestSetup.password, on: session), policy: .replace)
    let warned = plan.decisions.filter { $0.warning != nil }
    #expect(warned.map(\.identity.account) == ["migrates-but-unusable"])
    #expect(warned.first.flatMap(\.warning).map(GlossaryTerm.warning) == term)
    #expect(warned.first?.outcome.fate == .migrates)
    #expect(plan.summary.byWarning.values.reduce(0, +) == 1)
    #expect(try KeychainSnapshot(session).items.count { $0.containsSecureEnclaveKey } == 1)
  }

  private func checkOmission(_ term: GlossaryTerm) throws {
    let session = try source.openTestSession()
    defer { session.invalidate() }
    let report = try BackupExporter.prepare(session, password: nil).report
    let omissions = report.omissions.filter { [$0.identity.account, $0.identity.label].contains(term.id) }
    #expect(omissions.compactMap(\.outcome.reason?.rawValue) == [term.id])
    let targetSession = try target.openTestSession(.reading)
    defer { targetSession.invalidate() }
    let plan = try Restorer.plan(SimulatedBackup(of: session, hasPassword: true), onto: targetSession, policy: .merge)
    // A deleted item does not count as staying behind.
    #expect(plan[term.id] == (term == .reason(.deleted) ? .absent : .staysBehind))
    if term != .reason(.deleted) { #expect(plan.reason(for: term.id)?.rawValue == term.id) }
  }

  private func checkPlanned(_ term: GlossaryTerm, password: String?, policy: ExistingItemPolicy) throws {
    let path = try setup.backUp(source, password: password)
    let session = try target.openTestSession()
    defer { session.invalidate() }
    let plan = try session.restore(setup.open(path, password: password, on: session), policy: policy)
    if case .reason = term {
      #expect(plan.summary.byReason.contains { $0.key.rawValue == term.id && $0.value > 0 })
      // The names of items that stay behind are encrypted, so the item can be found only by its reason.
      let decisions = plan.decisions.filter { $0.outcome.reason?.rawValue == term.id }
      #expect(decisions.allSatisfy { $0.outcome.fate == .staysBehind })
      return
    }
    let decision = try plan.decision(term.id)
    switch term {
    case .change(let change): #expect(decision.outcome == .migrates(change))
    // `inferredSynchronizable`
    default: #expect(decision.detail?.hasPrefix(term.id + ":") == true)
    }
    let items = try KeychainSnapshot(session).items.filter { $0[.account] == .string(term.id) }
    #expect(items.count == 1)
    // The secret states which phone the item comes from: the source `every-rule` or the target.
    let secret = items.first?.secretBytes.map { String(decoding: $0, as: UTF8.self) }
    #expect(secret == (term == .change(.keepsExisting) ? "target" : "every-rule"))
    if term == .inferredSynchronizable { #expect(items.first?.isSynchronizable == true) }
  }

  private func checkTarget() throws {
    let path = try setup.backUp(source, password: TestSetup.password)
    let session = try target.openTestSession()
    defer { session.invalidate() }
    let plan = try session.restore(setup.open(path, password: TestSetup.password, on: session), policy: .replace)
    #expect(plan.removed.map(\.account) == ["removed"])
    let items = try KeychainSnapshot(session).items
    #expect(!items.contains { $0[.account] == .string("removed") })
    // The secrets name the three kinds of items that a replacing restore keeps: items of the system, which it puts back;
    // items of protected groups, which it never deletes; and synchronized items.
    let preserved = items.filter { $0[.account] == .string("preserved") }
    #expect(
      Set(preserved.compactMap { $0.secretBytes.map { String(decoding: $0, as: UTF8.self) } })
        == ["put back", "never deleted", "synchronized"])
  }

  private func check(_ tampering: TermSource.TamperedBackup, gives term: GlossaryTerm) throws {
    let tamperingWriter = TamperingWriter(setup: setup, password: TestSetup.password)
    let path = try tamperingWriter.backUp(source) { contents in
      // Entry 1 is an item that the target can decrypt. Byte 60 of its blob is a part of the ciphertext, after a header
      // of 12 bytes and a wrapped key of 40 bytes.
      switch tampering {
      case .changedByte: try contents.editEntries { $0[1].blob?[60] ^= 1 }
      case .cutBlob: try contents.editEntries { $0[1].blob = $0[1].blob.map { Array($0.prefix(20)) } }
      case .newVersion: try contents.editEntries { $0[1].blob?[0] = 99 }
      case .classKeyRemoved: contents.keybag.classKeys.removeAll { $0.keyClass == .whenUnlocked }
      case .otherKeybag: contents.keybag.uuid = [UInt8](repeating: 7, count: 16)
      case .brokenSeal: break
      }
    }
    let session = try target.openTestSession(.reading)
    defer { session.invalidate() }
    switch tampering {
    case .brokenSeal: return try checkBrokenSeal(of: path, on: session)
    case .otherKeybag: return try checkKeybagMismatch(of: path, on: session)
    case .changedByte, .cutBlob, .newVersion, .classKeyRemoved: break
    }
    let plan = try Restorer.plan(
      setup.open(path, password: TestSetup.password, on: session), onto: session, policy: .replace)
    #expect(plan.decisions[1].outcome.reason?.rawValue == term.id)
    #expect(plan.decisions[1].outcome.fate == .unreadable)
  }

  private func checkBrokenSeal(of path: String, on session: DeviceSession) throws {
    try TamperingWriter.changeSeal(of: path)
    let error = try keyhaulError { _ = try setup.open(path, password: TestSetup.password, on: session) }
    #expect(error?.category == .damaged)
    let reason = "its authentication code does not match: it was made for another backup, or has changed since"
    #expect(error?.reason.contains(reason) == true)
  }

  private func checkKeybagMismatch(of path: String, on session: DeviceSession) throws {
    let error = try keyhaulError { _ = try setup.open(path, password: TestSetup.password, on: session) }
    #expect(error?.code == .keybagMismatch && error?.category == .damaged)
  }
}
