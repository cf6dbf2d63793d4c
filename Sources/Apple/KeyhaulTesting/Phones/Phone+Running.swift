import Basics
import KeychainServices

extension Phone {
  /// Runs an app's code on the phone. Its keychain calls use this phone's keychain.
  ///
  /// This applies to the closure and to its child tasks. Code on a queue, on another thread or in a detached task uses
  /// the phone only with `inWholeProcess`, or inside `DefaultKeychain.using(client())`.
  ///
  /// - Parameters:
  ///   - app: One of `apps`, whose access groups the calls have. `nil` if the phone has only one app.
  ///   - inWholeProcess: Whether the calls of the whole process use this phone while the closure runs. Calls of other
  ///     phones' `run` still use those phones. The closure has to wait for the work that it starts.
  ///   - body: The app's code.
  /// - Throws: `PhoneError` of code `.noSuchApp`, `.appNotNamed` or `.processInUse`, and what the closure throws.
  @discardableResult
  public func run<Result>(
    as app: String? = nil, inWholeProcess: Bool = false, _ body: () throws -> Result
  ) throws -> Result {
    let client = try client(as: app)
    if inWholeProcess { try Self.installProcessOverride(client) }
    defer { if inWholeProcess { DefaultKeychain.removeProcessOverride() } }
    return try DefaultKeychain.using(client, body)
  }

  /// Runs an app's asynchronous code on the phone. Its keychain calls use this phone's keychain.
  ///
  /// This applies to the closure and to its child tasks. Code on a queue, on another thread or in a detached task uses
  /// the phone only with `inWholeProcess`, or inside `DefaultKeychain.using(client())`.
  ///
  /// - Parameters:
  ///   - app: One of `apps`, whose access groups the calls have. `nil` if the phone has only one app.
  ///   - inWholeProcess: Whether the calls of the whole process use this phone while the closure runs. Calls of other
  ///     phones' `run` still use those phones. The closure has to wait for the work that it starts.
  ///   - isolation: The caller's actor, on which the code runs.
  ///   - body: The app's code.
  /// - Throws: `PhoneError` of code `.noSuchApp`, `.appNotNamed` or `.processInUse`, and what the closure throws.
  @discardableResult
  public func run<Result>(
    as app: String? = nil, inWholeProcess: Bool = false, isolation: isolated (any Actor)? = #isolation,
    _ body: () async throws -> Result
  ) async throws -> Result {
    let client = try client(as: app)
    if inWholeProcess { try Self.installProcessOverride(client) }
    defer { if inWholeProcess { DefaultKeychain.removeProcessOverride() } }
    return try await DefaultKeychain.using(client, isolation: isolation, body)
  }

  private static func installProcessOverride(_ client: KeychainClient) throws(PhoneError) {
    guard DefaultKeychain.installProcessOverride(client) else {
      throw PhoneError(
        .processInUse, .busy, "another phone is running in the whole process",
        "a keychain call on a queue or in a detached task can use only one phone",
        advice: "put such tests into one @Suite(.serialized), or wrap the queue's code in "
          + "DefaultKeychain.using(phone.client())")
    }
  }

  /// Returns the name of the selected app.
  func resolvedApp(_ app: String?) throws(PhoneError) -> String {
    let appNames = apps.map { "\"\(UntrustedText.escaped($0))\"" }.joined(separator: ", ")
    guard let app else {
      if apps.count == 1 { return apps[0] }
      throw PhoneError(
        .appNotNamed, .usage, "no app was named", apps.isEmpty ? "the phone has none" : "the phone has \(appNames)",
        advice: apps.isEmpty ? "list \"apps\" in the fixture, with their access groups" : "run(as:) with one of them")
    }
    guard apps.contains(app) else {
      let similarName = EditDistance.nearest(to: app, among: apps)
      throw PhoneError(
        .noSuchApp, .notFound, "the phone has no app \"\(UntrustedText.escaped(app))\"",
        apps.isEmpty ? "it has none" : "it has \(appNames)",
        advice: similarName.map { "\"\($0)\"" } ?? "Phone(apps:) with the app and its access groups")
    }
    return app
  }
}
