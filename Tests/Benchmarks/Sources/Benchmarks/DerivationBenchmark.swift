import Basics
import COpenSSLForComparison
import Foundation
import KeychainCrypto

/// Compares the unlock of a keybag that has 10,000,000 iterations, as a real backup's does, with OpenSSL's own call.
enum DerivationBenchmark {
  private static let iterationCount: Int32 = 10_000_000

  static func figure() throws -> Figure {
    let password = Array("correct horse".utf8)
    let salt = [UInt8](repeating: 7, count: 20)
    let parameters = PasswordDerivation.Parameters(
      salt: salt, iterations: 10_000, sha256Step: .init(salt: salt, iterations: UInt32(iterationCount)))
    var ratios: [Double] = []
    for _ in 0..<3 {
      let keyhaulTime = try seconds {
        _ = try PasswordDerivation.passcodeKey(password: Secret(copying: password), parameters: parameters)
      }
      let openSSLTime = seconds {
        var key = [UInt8](repeating: 0, count: 32)
        password.withUnsafeBytes { bytes in
          _ = PKCS5_PBKDF2_HMAC(
            bytes.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(bytes.count), salt, Int32(salt.count),
            iterationCount, EVP_sha256(), 32, &key)
        }
      }
      ratios.append(keyhaulTime / openSSLTime)
    }
    return Figure(
      name: "unlock with 10,000,000 rounds against PKCS5_PBKDF2_HMAC (\(hasExtensions ? "with" : "no") SHA extensions)",
      value: ratios.median, unit: "times", limit: hasExtensions ? 0.40 : nil)
  }

  /// Whether the processor has SHA extensions. Without these extensions, Keyhaul uses OpenSSL, and the ratio is
  /// about one.
  private static var hasExtensions: Bool {
    let flags = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)) ?? ""
    return flags.split(whereSeparator: \.isWhitespace).contains("sha_ni")
  }
}
