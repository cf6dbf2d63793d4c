public import Basics
public import VirtualDevice

/// Which device, and which of its apps, the keychain calls of this process speak to.
///
/// A task that was given a client of its own with `using` speaks to that one, and so do its child tasks; everyone else
/// speaks to the one of the process. Where nobody chose, that is an app on a new device that is gone with the process: with
/// the passcode 0000, unlocked, and one access group. `KEYHAUL_DEVICE_APP`, `KEYHAUL_DEVICE_GROUPS` (with commas between
/// them) and `KEYHAUL_DEVICE_PASSCODE` in the environment say otherwise; so do `CFBundleIdentifier` and
/// `keychain-access-groups` of an `Info.plist` beside the program.
public enum DefaultKeychain {
  @TaskLocal private static var ownClient: KeychainClient?
  private static let processClient = Locked<KeychainClient?>(nil)
  /// The client of a `run` in the whole process, which comes before the process's own.
  private static let wholeProcessClient = Locked<KeychainClient?>(nil)

  /// Whom keychain calls speak to here and now.
  ///
  /// - Throws: What making the device of the process reports, where nobody chose one.
  public static func client() throws(KeyhaulError) -> KeychainClient {
    if let ownClient { return ownClient }
    if let client = wholeProcessClient.withLock({ $0 }) { return client }
    return try processClient.withLock { (client) throws(KeyhaulError) in
      if let client { return client }
      let made = try KeychainClient.ofTheProcess()
      client = made
      return made
    }
  }

  /// Lets the whole process speak to a device as one of its apps.
  public static func use(_ device: VirtualDevice, as app: String) {
    use(KeychainClient(device, as: app))
  }

  /// Lets the whole process speak through this client; `nil` for a new device that is gone with the process.
  public static func use(_ client: KeychainClient?) {
    processClient.withLock { $0 = client }
  }

  /// Lets what the closure does speak to a device as one of its apps; tasks and threads beside it are not touched.
  ///
  /// Child tasks of the closure's speak to this device too; a thread or a queue that it starts, to the process's.
  public static func using<Result>(
    _ device: VirtualDevice, as app: String, _ body: () throws -> Result
  ) rethrows -> Result {
    try using(KeychainClient(device, as: app), body)
  }

  /// Lets what the closure does speak through this client; tasks and threads beside it are not touched.
  public static func using<Result>(
    _ client: KeychainClient, _ body: () throws -> Result
  ) rethrows -> Result {
    try $ownClient.withValue(client, operation: body)
  }

  /// Lets what an asynchronous closure and its child tasks do speak to a device as one of its apps.
  public static func using<Result>(
    _ device: VirtualDevice, as app: String, isolation: isolated (any Actor)? = #isolation,
    _ body: () async throws -> Result
  ) async rethrows -> Result {
    try await using(KeychainClient(device, as: app), isolation: isolation, body)
  }

  /// Lets what an asynchronous closure and its child tasks do speak through this client.
  public static func using<Result>(
    _ client: KeychainClient, isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
  ) async rethrows -> Result {
    try await $ownClient.withValue(client, operation: body, isolation: isolation)
  }

  /// Directs the calls of the whole process to a client, also calls on queues, on threads and in detached tasks. Calls
  /// inside `using` keep their own client.
  ///
  /// - Returns: `false` if the process has such a client already; then nothing changes.
  package static func beginInWholeProcess(_ client: KeychainClient) -> Bool {
    wholeProcessClient.withLock { current in
      guard current == nil else { return false }
      current = client
      return true
    }
  }

  /// Ends what `beginInWholeProcess` began.
  package static func endInWholeProcess() {
    wholeProcessClient.withLock { $0 = nil }
  }
}
