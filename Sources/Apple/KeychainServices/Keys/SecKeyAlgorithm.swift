public import Foundation

/// What is done with a key, and how: the name that Apple's constants have.
public struct SecKeyAlgorithm: RawRepresentable, Hashable, Sendable {
  let name: String

  /// The text of the constant.
  public var rawValue: CFString { name as NSString }

  /// Creates an algorithm of the text of a constant; a text that none has is supported by no key.
  public init(rawValue: CFString) { name = rawValue as String }

  init(_ name: String) { self.name = name }
}

/// A parameter of a key exchange.
public struct SecKeyKeyExchangeParameter: RawRepresentable, Hashable, Sendable {
  private let name: String

  /// The text of the constant.
  public var rawValue: CFString { name as NSString }

  /// Creates a parameter of the text of a constant.
  public init(rawValue: CFString) { name = rawValue as String }

  /// How many bytes are to be derived: a number.
  public static let requestedSize = SecKeyKeyExchangeParameter(rawValue: "requestedSize")
  /// What both sides add to the derivation: data, of which any length may be.
  public static let sharedInfo = SecKeyKeyExchangeParameter(rawValue: "sharedInfo")
}

/// What a key is asked to do.
public enum SecKeyOperationType: Int, Sendable {
  /// Make a signature; a private key.
  case sign = 0
  /// Check a signature; a public key.
  case verify = 1
  /// Encrypt; a public key.
  case encrypt = 2
  /// Decrypt; a private key.
  case decrypt = 3
  /// Agree on a secret with another key; a private key.
  case keyExchange = 4
}
