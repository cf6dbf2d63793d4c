import CKeyhaul
import KeyhaulKit

/// A QR code with error correction level M, created by libqrencode.
///
/// Source: ISO/IEC 18004; libqrencode 4.
struct QRCode {
  /// The maximum number of bytes in a QR code: version 40 with error correction level M.
  static let capacity = 2_331

  /// The number of modules in a row, and of rows: 21 to 177.
  let width: Int
  /// A byte for each module, row by row: 1 for a dark module.
  private let modules: SensitiveBytes

  /// Creates a QR code that contains bytes.
  ///
  /// - Throws: `.tooLong` if the bytes do not fit, `.noLibrary` if libqrencode cannot be loaded, `.noMemory` if there is not
  ///   enough memory.
  init(_ bytes: SensitiveBytes) throws(QRCodeError) {
    let maximumWidth = Int(KEYHAUL_QR_LARGEST_WIDTH)
    // The width, or a failure code. The initial value stays if there are no bytes, or more than libqrencode can count.
    var widthOrFailure = keyhaul_qr_too_long
    let modules = SensitiveBytes(count: maximumWidth * maximumWidth) { modules in
      guard let count = Int32(exactly: bytes.count), let start = modules.bindMemory(to: UInt8.self).baseAddress else {
        return
      }
      widthOrFailure = bytes.withBytes { bytes in
        guard let bytes = bytes.bindMemory(to: UInt8.self).baseAddress else { return widthOrFailure }
        return Int(keyhaul_qr_code(bytes, count, start))
      }
    }
    switch widthOrFailure {
    case keyhaul_qr_no_library: throw .noLibrary
    case keyhaul_qr_no_memory: throw .noMemory
    case 1...: break
    default: throw .tooLong
    }
    width = widthOrFailure
    self.modules = modules
  }

  /// Appends the code as an SVG image with a quiet zone of four modules. Adjacent dark modules of a row are one rectangle.
  ///
  /// - Parameter title: A description of the image, for people who cannot see it.
  func append(to text: inout SensitiveBuffer, title: String) {
    let quietZone = 4
    let side = width + 2 * quietZone
    text.append("<svg class=\"code\" role=\"img\" viewBox=\"0 0 \(side) \(side)\" shape-rendering=\"crispEdges\">")
    text.append("<title>\(HTMLWriter.escaped(title))</title><rect width=\"\(side)\" height=\"\(side)\" fill=\"#fff\"/>")
    text.append("<path fill=\"#000\" d=\"")
    modules.withBytes { modules in
      for row in 0..<width {
        var column = 0
        while column < width {
          let start = column
          while column < width, modules[row * width + column] == 1 { column += 1 }
          if column > start {
            text.append("M\(start + quietZone) \(row + quietZone)h\(column - start)v1h\(start - column)z")
          } else {
            column += 1
          }
        }
      }
    }
    text.append("\"/></svg>")
  }
}

/// A reason why a QR code cannot be created.
enum QRCodeError: Error {
  /// The bytes do not fit in a QR code.
  case tooLong
  /// libqrencode 4 cannot be loaded.
  case noLibrary
  /// There is not enough memory.
  case noMemory
}
