import Basics
import KeychainFormats
import KeychainServices
import VirtualDevice

extension Phone {
  /// Runs an app's own code on the phone: its keychain calls reach this phone's keychain and no other.
  ///
  /// That holds for the closure and for the child tasks that it starts. What runs on a queue or a thread of its own
  /// speaks to the process's device: give such code `DefaultKeychain.using` with `client(as:)` where it runs.
  ///
  /// - Parameters:
  ///   - app: One of `apps`, whose access groups the calls have; may be left out where there is one alone.
  ///   - body: The app's code.
  /// - Throws: `PhoneError` of code `.noSuchApp` or `.appNotNamed`, and what the closure throws.
  @discardableResult
  public func run<Result>(as app: String? = nil, _ body: () throws -> Result) throws -> Result {
    try DefaultKeychain.using(client(as: app), body)
  }

  /// Runs an app's own code on the phone: its keychain calls reach this phone's keychain and no other.
  ///
  /// - Parameters:
  ///   - app: One of `apps`, whose access groups the calls have; may be left out where there is one alone.
  ///   - isolation: The caller's actor, on which the code runs.
  ///   - body: The app's code.
  /// - Throws: `PhoneError` of code `.noSuchApp` or `.appNotNamed`, and what the closure throws.
  @discardableResult
  public func run<Result>(
    as app: String? = nil, isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
  ) async throws -> Result {
    try await DefaultKeychain.using(client(as: app), isolation: isolation, body)
  }

  /// The app that a test means.
  func chosen(_ app: String?) throws(PhoneError) -> String {
    let list = apps.map { "\"\(HostileText.shown($0))\"" }.joined(separator: ", ")
    guard let app else {
      if apps.count == 1 { return apps[0] }
      throw PhoneError(
        .appNotNamed, .usage, "no app was named", apps.isEmpty ? "the phone has none" : "the phone has \(list)",
        advice: apps.isEmpty ? "\"apps\" in the fixture, each with its access groups" : "run(as:) with one of them")
    }
    guard apps.contains(app) else {
      let near = EditDistance.nearest(to: app, among: apps)
      throw PhoneError(
        .noSuchApp, .notFound, "the phone has no app \"\(HostileText.shown(app))\"",
        apps.isEmpty ? "it has none" : "it has \(list)",
        advice: near.map { "\"\($0)\"" } ?? "Phone(apps:) with the app and its access groups")
    }
    return app
  }
}
