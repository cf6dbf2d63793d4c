import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules

extension AttributeConversion {
  /// Converts a value of a call to the type of an attribute.
  ///
  /// - Throws: `.parameter`. The reason states types but not the value.
  static func converted(
    _ value: SecItemValue, for definition: AttributeDefinition
  ) throws(SecItemError) -> PropertyValue {
    let code = definition.code.rawValue
    switch definition.kind {
    case .encryptedData, .primaryKey, .rowID, .useTombstone:
      throw SecItemError(.parameter, "\(code) cannot be specified in a call")
    case .sha1:
      guard let digest = value.dataValue, digest.count == 20 else {
        throw SecItemError(.parameter, "\(code) accepts only data of 20 bytes")
      }
      return .data(digest)
    case .string:
      if case .uuid(let bytes) = value, let text = UUIDText.uppercase(bytes) { return .string(text) }
    case .creationDate, .modificationDate, .date, .blob, .data, .number, .access, .accessControl, .sync, .tomb, .uuid:
      break
    }
    guard let propertyValue = value.attributeValue else {
      throw SecItemError(.parameter, "\(code) does not accept a value of this type")
    }
    do throws(FormatError) {
      return normalizingName(try convert(propertyValue, for: definition), definition.code)
    } catch {
      throw SecItemError(.parameter, error.reason)
    }
  }

  /// Returns an issuer in the normalized form of keychains. Source: Apple `SecItem.m`.
  private static func normalizingName(_ value: PropertyValue, _ code: AttributeCode) -> PropertyValue {
    guard code == .issuer, let name = value.dataValue.flatMap(CertificateAttributes.normalizedName) else {
      return value
    }
    return .data(name)
  }
}
