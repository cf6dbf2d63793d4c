import ArgumentParser
import KeyhaulKit

/// The keychain that a verb of items means.
struct TargetKeychain: ParsableArguments {
  @Argument(
    help: "The device; or a backup, or a Simulator's keychain.", completion: .devicesAndFiles) var keychain: String
  @OptionGroup var wait: WaitOptions

  init() {}

  func find(
    _ unlocking: UnlockingOptions, _ databaseKeys: DatabaseKeyOptions? = nil, in session: Session
  ) throws(CommandFailure) -> FoundKeychain {
    let found = try ArgumentFinder(session, databaseKeys).keychain(keychain, wait: wait.time)
    if case .device(let device) = found { try unlocking.refuse(for: device.name) }
    if case .dump(let dump) = found { try dump.refuse(unlocking) }
    try databaseKeys?.check([found])
    return found
  }
}

extension ItemSelection {
  /// Refuses to act as an app where no device says which groups it has.
  func requireNoApp(of name: String) throws(CommandFailure) {
    guard let app else { return }
    throw .usage(
      "--app \(app) applies only to devices", why: "\(name) does not show which access groups an app has",
      try: "--access-group GROUP")
  }
}
