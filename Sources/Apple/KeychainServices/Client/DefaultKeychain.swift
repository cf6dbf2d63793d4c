public import Basics
public import VirtualDevice

/// The device and the app that keychain calls of this process use.
///
/// Code inside `using` and its child tasks use the client that `using` sets. All other code uses the client of the
/// process. By default, this is an app with one access group. Its device is new and unlocked, has the passcode 0000,
/// and is deleted when the process ends. The environment variables `KEYHAUL_DEVICE_APP`, `KEYHAUL_DEVICE_GROUPS`
/// (separated by commas) and `KEYHAUL_DEVICE_PASSCODE` change these defaults. So do `CFBundleIdentifier` and
/// `keychain-access-groups` in an `Info.plist` beside the program.
public enum DefaultKeychain {
  @TaskLocal private static var taskClient: KeychainClient?
  private static let processClient = Locked<KeychainClient?>(nil)
  /// The client of `Phone.run(inWholeProcess: true)`. It takes precedence over the process's own client.
  private static let processOverride = Locked<KeychainClient?>(nil)

  /// Returns the client that keychain calls in this task use.
  ///
  /// - Throws: An error if the default device of the process cannot be created.
  public static func client() throws(KeyhaulError) -> KeychainClient {
    if let taskClient { return taskClient }
    if let client = processOverride.withLock({ $0 }) { return client }
    return try processClient.withLock { (client) throws(KeyhaulError) in
      if let client { return client }
      let newClient = try KeychainClient.makeForProcess()
      client = newClient
      return newClient
    }
  }

  /// Sets the device and the app for the whole process.
  public static func use(_ device: VirtualDevice, as app: String) {
    use(KeychainClient(device, as: app))
  }

  /// Sets the client for the whole process. After `nil`, the next keychain call creates a new default device.
  public static func use(_ client: KeychainClient?) {
    processClient.withLock { $0 = client }
  }

  /// Runs the closure with a device and an app for its keychain calls. Other tasks and threads are not affected.
  ///
  /// Child tasks of the closure also use this device. Code that the closure runs on a thread or a queue uses the device
  /// of the process.
  public static func using<Result>(
    _ device: VirtualDevice, as app: String, _ body: () throws -> Result
  ) rethrows -> Result {
    try using(KeychainClient(device, as: app), body)
  }

  /// Runs the closure with a client for its keychain calls. Other tasks and threads are not affected.
  public static func using<Result>(
    _ client: KeychainClient, _ body: () throws -> Result
  ) rethrows -> Result {
    try $taskClient.withValue(client, operation: body)
  }

  /// Runs an asynchronous closure and its child tasks with a device and an app for their keychain calls.
  public static func using<Result>(
    _ device: VirtualDevice, as app: String, isolation: isolated (any Actor)? = #isolation,
    _ body: () async throws -> Result
  ) async rethrows -> Result {
    try await using(KeychainClient(device, as: app), isolation: isolation, body)
  }

  /// Runs an asynchronous closure and its child tasks with a client for their keychain calls.
  public static func using<Result>(
    _ client: KeychainClient, isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
  ) async rethrows -> Result {
    try await $taskClient.withValue(client, operation: body, isolation: isolation)
  }

  /// Directs the calls of the whole process to a client, including those on queues, on threads and in detached tasks.
  /// Calls inside `using` keep their own client.
  ///
  /// - Returns: Whether the client was installed. `false` if such a client is already installed.
  package static func installProcessOverride(_ client: KeychainClient) -> Bool {
    processOverride.withLock { current in
      guard current == nil else { return false }
      current = client
      return true
    }
  }

  /// Reverses `installProcessOverride`.
  package static func removeProcessOverride() {
    processOverride.withLock { $0 = nil }
  }
}
