import Basics
import KeychainCrypto
import KeychainFormats

/// Determines which of the matching items require authentication, and asks the user.
///
/// Reading only attributes never requires authentication, because they are decrypted when the device is unlocked. A
/// call asks the user once for each distinct requirement. Source: Apple `SecItem.m` (`SecItemAuthDo`).
struct SecItemAuthenticator {
  /// The attribute with the salted hash of an item's application password. It is encrypted with the item and never
  /// returned.
  static let passwordCheck: AttributeCode = "keyhaul.application-password"
  private static let saltByteCount = 16

  let interaction: ParsedQuery.Interaction
  let context: AuthenticationContext?
  let prompt: String?
  let authenticate: (AuthenticationRequest) -> AuthenticationOutcome

  init(_ query: ParsedQuery, _ environment: SecItemEnvironment) {
    interaction = query.interaction
    context = query.context
    prompt = query.prompt ?? query.context?.prompt
    authenticate = environment.authenticate
  }

  /// Creates an authenticator for an operation without a query.
  init(_ environment: SecItemEnvironment) {
    (interaction, context, prompt) = (.allowed, nil, nil)
    authenticate = environment.authenticate
  }

  /// Returns the requirement for decrypting an item. A key that may be used but not decrypted has the requirement for
  /// signing.
  static func requirement(toDecrypt item: KeychainItem) -> AccessRequirement {
    guard let control = item.accessControlObject, control.isConstrained else { return AccessRequirement() }
    let decryption = control.requirement(for: .decrypt)
    return decryption.isForbidden && item.kind == .key ? control.requirement(for: .sign) : decryption
  }

  static func requirement(toDelete item: KeychainItem) -> AccessRequirement {
    guard let control = item.accessControlObject, control.isConstrained else { return AccessRequirement() }
    return control.requirement(for: .delete)
  }

  /// Requests the authentication that these items require.
  ///
  /// - Throws: `.authFailed`, `.userCanceled`; `.interactionNotAllowed` if the user must not or cannot be asked.
  func satisfy(
    _ items: [KeychainItem], _ operation: AccessOperation, by requirement: (KeychainItem) -> AccessRequirement
  ) throws(SecItemError) {
    var requested: Set<AccessRequirement> = []
    for item in items {
      let outstanding = try remaining(requirement(item), of: item)
      guard !outstanding.isEmpty, requested.insert(outstanding).inserted else { continue }
      try ask(AuthenticationRequest(operation: operation, requirement: outstanding, prompt: prompt))
    }
  }

  private func ask(_ request: AuthenticationRequest) throws(SecItemError) {
    if request.requirement.isForbidden {
      throw SecItemError(.authFailed, "the item's access control never allows this")
    }
    if let outcome = context?.outcome {
      if let error = outcome.error { throw error }
      return
    }
    guard interaction == .allowed, context?.isInteractionAllowed ?? true else {
      throw SecItemError(.interactionNotAllowed, "the item requires authentication, but the call forbids prompts")
    }
    if let error = authenticate(request).error { throw error }
  }

  /// Returns the requirement, without the application password if the call provides the correct password.
  private func remaining(
    _ requirement: AccessRequirement, of item: KeychainItem
  ) throws(SecItemError) -> AccessRequirement {
    guard requirement.needsApplicationPassword, let password = context?.applicationPassword,
      let storedHash = item[Self.passwordCheck]?.dataValue
    else { return requirement }
    guard try Self.saltedHash(of: password, salt: Array(storedHash.prefix(Self.saltByteCount))) == storedHash else {
      throw SecItemError(.authFailed, "the application password is not the item's")
    }
    return AccessRequirement(factors: requirement.factors, requiredCount: requirement.requiredCount)
  }

  /// Returns the hash of an application password for a new item, with a new salt in front of it.
  static func saltedHash(of password: SensitiveBytes, random: any RandomSource) throws(SecItemError) -> [UInt8] {
    let salt = try random.bytesForCall(count: saltByteCount)
    return try saltedHash(of: password, salt: salt)
  }

  private static func saltedHash(of password: SensitiveBytes, salt: [UInt8]) throws(SecItemError) -> [UInt8] {
    let message = SensitiveBytes(count: salt.count + password.count) { (buffer: UnsafeMutableRawBufferPointer) in
      buffer.copyBytes(from: salt)
      password.withBytes { UnsafeMutableRawBufferPointer(rebasing: buffer[salt.count...]).copyMemory(from: $0) }
    }
    do throws(DataProtectionError) {
      return salt
        + (try message.withBytes { (bytes) throws(DataProtectionError) in try Digest.sha256(bytes) })
    } catch {
      throw SecItemError(.internalError, error.reason)
    }
  }
}
