import Basics
import KeychainCrypto
import KeychainFormats

/// Decides which of the rows that a call has found need a person, and asks for them.
///
/// Nothing is asked where only attributes are wanted: those open with the device. Each kind of demand is asked for once
/// in a call. Source: Apple `SecItem.m` (`SecItemAuthDo`).
struct SecItemAuthenticator {
  /// Where an item keeps what its application password is compared with; sealed with the item, never given back.
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

  /// For an operation that no query asks for.
  init(_ environment: SecItemEnvironment) {
    (interaction, context, prompt) = (.allowed, nil, nil)
    authenticate = environment.authenticate
  }

  /// What opening an item takes: its own constraint on decryption; a key that may be used alone is opened by using it.
  static func requirement(toOpen item: KeychainItem) -> AccessRequirement {
    guard let control = item.accessControlObject, control.isConstrained else { return AccessRequirement() }
    let opening = control.requirement(for: .decrypt)
    return opening.isForbidden && item.kind == .key ? control.requirement(for: .sign) : opening
  }

  static func requirement(toDelete item: KeychainItem) -> AccessRequirement {
    guard let control = item.accessControlObject, control.isConstrained else { return AccessRequirement() }
    return control.requirement(for: .delete)
  }

  /// Asks for everything that these items need.
  ///
  /// - Throws: `.authFailed`, `.userCanceled`; `.interactionNotAllowed` where nobody may or can be asked.
  func satisfy(
    _ items: [KeychainItem], _ operation: AccessOperation, by requirement: (KeychainItem) -> AccessRequirement
  ) throws(SecItemError) {
    var asked: Set<AccessRequirement> = []
    for item in items {
      let needed = try remaining(requirement(item), of: item)
      guard !needed.isEmpty, asked.insert(needed).inserted else { continue }
      try ask(AuthenticationRequest(operation: operation, requirement: needed, prompt: prompt))
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

  /// The requirement without the application password, where the call brings the right one.
  private func remaining(
    _ requirement: AccessRequirement, of item: KeychainItem
  ) throws(SecItemError) -> AccessRequirement {
    guard requirement.needsApplicationPassword, let given = context?.applicationPassword,
      let check = item[Self.passwordCheck]?.dataValue
    else { return requirement }
    guard try Self.check(of: given, salt: Array(check.prefix(Self.saltByteCount))) == check else {
      throw SecItemError(.authFailed, "the application password is not the item's")
    }
    return AccessRequirement(factors: requirement.factors, requiredCount: requirement.requiredCount)
  }

  /// What a new item with this application password keeps.
  static func check(of password: SensitiveBytes, random: any RandomSource) throws(SecItemError) -> [UInt8] {
    let salt = try random.bytesForCall(count: saltByteCount)
    return try check(of: password, salt: salt)
  }

  private static func check(of password: SensitiveBytes, salt: [UInt8]) throws(SecItemError) -> [UInt8] {
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
