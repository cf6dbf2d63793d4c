import Foundation
import KeychainFormats
import VirtualDevice

extension SecItemReference {
  /// The certificate, key or identity as an object for callers.
  var object: AnyObject {
    switch self {
    case .certificate(let item): SecCertificate(item)
    case .key(let item): SecKey(item)
    case .identity(let certificate, let key): SecIdentity(certificate: certificate, key: key)
    }
  }
}
