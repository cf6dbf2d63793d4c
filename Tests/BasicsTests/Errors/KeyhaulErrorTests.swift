import Basics
import SystemPackage
import Testing

@Suite("KeyhaulError")
struct KeyhaulErrorTests {
  private static let code = KeyhaulError.Code(
    "busy", of: .init("one"), .busy, "it is in use", advice: "wait until it is free")
  private static let otherCode = KeyhaulError.Code(
    "busy", of: .init("another"), .busy, "it is in use", advice: "wait until it is free")

  private struct Refusal: ExplainedError {
    let meaning = ErrorMeaning(.refused, "it was refused", advice: "ask again")
    let reason = "the rule forbids it"
    let stage = CommitStage.afterCommit
  }

  @Test("Two error codes with the same identifier differ if their domains differ")
  func domains() {
    #expect(Self.code != Self.otherCode && Self.code.rawValue == Self.otherCode.rawValue)
    #expect(KeyhaulError(Self.code, "a fact") != KeyhaulError(Self.otherCode, "a fact"))
    #expect(Set([Self.code, Self.otherCode, Self.code]).count == 2)
  }

  @Test("An error has its code's category, summary and advice unless it brings its own")
  func meaning() {
    let error = KeyhaulError(Self.code, "a fact")
    #expect(error.category == .busy && error.advice == "wait until it is free")
    #expect(error.description == "it is in use: a fact")
    let overridingError = KeyhaulError(
      Self.code, "a fact", meaning: ErrorMeaning(.locked, "it is locked", advice: "unlock it"))
    #expect(overridingError.code == Self.code && overridingError.category == .locked)
    #expect(overridingError.summary == "it is locked")
  }

  @Test("A changed copy of an error keeps every part that was not replaced")
  func copies() {
    let error = KeyhaulError(Self.code, "a fact", subject: "phone", errno: .noMemory, underlying: Refusal())
    let laterError = error.with(stage: .afterCommit)
    #expect(laterError.stage == .afterCommit && laterError.subject == "phone" && laterError.errno == .noMemory)
    #expect(laterError.reason == "a fact" && laterError.underlying is Refusal)
    #expect(laterError != error)
    #expect(error.with() == error)
  }

  @Test("A KeyhaulError made from a lower layer's error keeps its text and stage")
  func underlying() {
    let error = KeyhaulError(Refusal())
    #expect(error.code == .underlying && error.underlying is Refusal)
    #expect(error.category == .refused && error.reason == "the rule forbids it" && error.stage == .afterCommit)
  }

  @Test("A KeyhaulError made from another KeyhaulError is equal to it")
  func unchanged() {
    let original = KeyhaulError(Self.code, "a fact")
    #expect(KeyhaulError(original as any ExplainedError) == original)
  }

  @Test("A translated error has the given subject")
  func translated() {
    #expect(throws: KeyhaulError(Refusal()).with(subject: "phone")) {
      try translatingErrors(about: "phone") { () throws(Refusal) in throw Refusal() }
    }
  }

  @Test(
    "An error shows whether the system was short of descriptors or memory",
    arguments: [
      (.tooManyOpenFiles, true), (.tooManyOpenFilesInSystem, true), (.noMemory, true), (.noSpace, false), (nil, false),
    ] as [(Errno?, Bool)])
  func shortages(_ errno: Errno?, isResourceShortage: Bool) {
    #expect(KeyhaulError(Self.code, "too many open files", errno: errno).isResourceShortage == isResourceShortage)
  }

  @Test("A shortage of file descriptors is recognized at the end of a library's error message")
  func texts() {
    let text = "libarchive.so.13: cannot open shared object file: \(Errno.tooManyOpenFiles)"
    #expect(Errno.resourceShortage(in: text) == .tooManyOpenFiles)
    #expect(Errno.resourceShortage(in: "libarchive.so.13: undefined symbol") == nil)
  }
}
