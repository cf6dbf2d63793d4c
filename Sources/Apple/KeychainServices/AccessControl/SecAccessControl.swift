// swift-format-ignore-file: AlwaysUseLowerCamelCase

import Basics
public import Foundation
import KeychainFormats
import VirtualDevice

/// A protection class and the authentication that an item requires.
public final class SecAccessControl: Sendable {
  let control: AccessControl

  init(_ control: AccessControl) { self.control = control }
}

extension SecAccessControl: Hashable {
  /// Returns whether both have the same protection class and require the same authentication for every operation. The
  /// order of their entries does not matter.
  public static func == (left: SecAccessControl, right: SecAccessControl) -> Bool {
    let (left, right) = (left.control, right.control)
    guard left.protection == right.protection, left.isConstrained == right.isConstrained else { return false }
    return AccessOperation.allCases.allSatisfy { left.requirement(for: $0) == right.requirement(for: $0) }
  }

  public func hash(into hasher: inout Hasher) { hasher.combine(control.protection) }
}

/// Creates an access control.
///
/// - Parameters:
///   - allocator: Not used.
///   - protection: One of the values of `kSecAttrAccessible`.
///   - flags: The required authentication, or an empty set for only a protection class.
///   - error: Receives `errSecParam` if the protection is not one of these values or the flags contradict each other.
/// - Returns: The access control, or `nil` if there is an error.
public func SecAccessControlCreateWithFlags(
  _ allocator: CFAllocator?, _ protection: CFTypeRef, _ flags: SecAccessControlCreateFlags,
  _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecAccessControl? {
  do throws(SecItemError) {
    guard let code = protection as? NSString else {
      throw SecItemError(.parameter, "the protection must be one of the values of kSecAttrAccessible")
    }
    return SecAccessControl(
      try AccessControl(
        protectionCode: String(describing: code), flags: AccessControlFlags(rawValue: UInt64(flags.rawValue))))
  } catch let failure {
    error?.pointee = Unmanaged.passRetained(CFError(failure))
    return nil
  }
}

/// Returns the type identifier of access controls, as `CFGetTypeID` does.
public func SecAccessControlGetTypeID() -> CFTypeID { CoreFoundationType.accessControl.rawValue }

extension NSError {
  /// Creates a Core Foundation error from the error of a keychain call.
  convenience init(_ error: SecItemError) {
    self.init(
      domain: NSOSStatusErrorDomain, code: Int(error.status.rawValue),
      userInfo: [NSLocalizedDescriptionKey: error.status.sentence, NSLocalizedFailureReasonErrorKey: error.reason])
  }
}

extension SecAccessControl: SecurityObject {
  static var coreFoundationType: CoreFoundationType { .accessControl }
}
