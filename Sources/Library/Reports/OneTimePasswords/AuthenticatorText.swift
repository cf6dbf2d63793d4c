package import KeyhaulKit

/// The texts about authenticator apps whose codes are not in a backup, or are encrypted in it.
package enum AuthenticatorText {
  /// Returns two sentences about missing codes and what to do: "Raivo OTP is installed; its codes are …".
  package static func sentence(_ app: AuthenticatorApp, _ obstacle: AuthenticatorAccounts.Obstacle) -> String {
    let advice = advice(app)
    return "\(app.name) is installed; \(reason(obstacle)). \(advice.prefix(1).uppercased())\(advice.dropFirst())."
  }

  /// Returns the reason as a clause: "its codes are encrypted with the app's own password".
  package static func reason(_ obstacle: AuthenticatorAccounts.Obstacle) -> String {
    switch obstacle {
    case .neverInBackup: "its current versions keep their codes out of every backup"
    case .deviceKey: "its codes are encrypted with a key that never leaves the device"
    case .appPassword: "its codes are encrypted with the app's own password"
    case .unpublishedKey: "its codes are encrypted with a key that its makers do not publish"
    case .unpublishedStorage: "its makers do not publish how it stores its codes"
    case .keychainKey(let count):
      "\(HumanReadable.count(count, "code")) of it \(count == 1 ? "is" : "are") encrypted with a key that cannot be "
        + "read here"
    case .file(let reason): "the file with its codes cannot be read: \(reason)"
    }
  }

  /// Returns the recommended action while the source device still works, as a clause.
  package static func advice(_ app: AuthenticatorApp) -> String {
    switch app {
    case .enteAuth:
      "sign in to Ente on the new device, or export the codes in the app before you erase the source device"
    case .freeOTP: "set the codes up again on the new device before you erase the source device"
    case .googleAuthenticator: "transfer the accounts in the app before you erase the source device"
    case .protonAuthenticator, .raivo, .twoFAS: "export the codes in the app before you erase the source device"
    }
  }
}

extension AuthenticatorAccounts {
  /// The authenticator apps in JSON: the number of codes in their files, and the reason why codes are missing.
  package var json: JSONValue {
    .array(
      AuthenticatorApp.allCases.compactMap { app in
        let count = accounts.count { $0.app == app }
        let obstacle = missing.first { $0.app == app }?.obstacle
        guard count > 0 || obstacle != nil else { return nil }
        let reason: [(String, JSONValue)] = obstacle.map { [("missing", .string($0.identifier))] } ?? []
        return .object([("app", .string(app.rawValue)), ("codes", .count(count))] + reason)
      })
  }
}
