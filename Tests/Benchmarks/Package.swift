// swift-tools-version: 6.2
import PackageDescription

/// Figures of the library and the program, as ratios within one run. A package of its own, so that the product keeps
/// few dependencies and no test depends on a time.
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
      ]),
    .executableTarget(name: "Contention", dependencies: [.product(name: "KeyhaulKit", package: "keyhaul")]),
  ],
  swiftLanguageModes: [.v6]
)
