// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "AppKeychainTests",
  dependencies: [.package(path: "../keyhaul")],
  targets: [
    .target(name: "SignIn", dependencies: [.product(name: "KeychainServices", package: "keyhaul")]),
    .testTarget(name: "SignInTests", dependencies: ["SignIn", .product(name: "KeyhaulTesting", package: "keyhaul")]),
  ]
)
