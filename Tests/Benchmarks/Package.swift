// swift-tools-version: 6.2
import PackageDescription

/// Settings that give these targets access to Keyhaul's `package` declarations. That package is named like its folder.
let inside: [SwiftSetting] = [
  .unsafeFlags([
    "-package-name",
    Context.packageDirectory.split(separator: "/").dropLast(2).last.map {
      String($0.lowercased().map { $0.isLetter || $0.isNumber ? $0 : "_" })
    } ?? "",
  ])
]

/// Benchmarks of the library and the program. They are a separate package, so that the product keeps few dependencies and
/// no test depends on a time.
let package = Package(
  name: "keyhaul-benchmarks",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "keyhaul", path: "../..")],
  targets: [
    .systemLibrary(name: "COpenSSLForComparison", pkgConfig: "libcrypto"),
    .systemLibrary(name: "CSQLiteForFixtures", pkgConfig: "sqlite3"),
    .executableTarget(
      name: "Benchmarks",
      dependencies: [
        "COpenSSLForComparison", "CSQLiteForFixtures", .product(name: "KeyhaulKit", package: "keyhaul"),
        .product(name: "KeychainServices", package: "keyhaul"),
      ], packageAccess: false, swiftSettings: inside),
    .executableTarget(
      name: "Contention", dependencies: [.product(name: "KeyhaulKit", package: "keyhaul")], packageAccess: false,
      swiftSettings: inside),
  ],
  swiftLanguageModes: [.v6]
)
