# Not tested with Homebrew. `make -C packaging packages` checks its syntax.
# Replace OWNER with the owner of the repository.
class Keyhaul < Formula
  desc "Inspect iOS keychain backups and plan moves between devices"
  homepage "https://github.com/OWNER/keyhaul"
  url "https://github.com/OWNER/keyhaul.git", tag: "v0.2.0"
  license "Apache-2.0"
  head "https://github.com/OWNER/keyhaul.git", branch: "main"

  depends_on "pkgconf" => :build
  depends_on xcode: ["26.0", :build] # Swift 6.2
  depends_on "libarchive"
  depends_on :macos
  depends_on macos: :sequoia
  depends_on "openssl@3"
  depends_on "qrencode"
  depends_on "utf8proc"

  uses_from_macos "python" => :build
  uses_from_macos "sqlite"

  def install
    ENV["KEYHAUL_COMMIT"] = Utils.git_short_head(length: 12).to_s
    system "swift", "build", "--disable-sandbox", "--configuration", "release", "--product", "keyhaul"
    bin.install ".build/release/keyhaul"
    system "python3", "packaging/make_man_pages.py", bin/"keyhaul", "pages"
    man1.install Dir["pages/*.1"]
    man5.install Dir["pages/*.5"]
    generate_completions_from_executable(bin/"keyhaul", "completions")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/keyhaul --version")
    assert_match "Will move", shell_output("#{bin}/keyhaul demo 2>&1")
  end
end
