package inlet

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}
import java.security.MessageDigest
import java.util.HexFormat
import javax.crypto.SecretKeyFactory
import javax.crypto.spec.PBEKeySpec
import javax.security.sasl.AuthenticationException

import scala.jdk.CollectionConverters._

import org.apache.hive.service.auth.PasswdAuthenticationProvider

object PasswordFile {

  /** Said once, when the server begins: a property of the JVM may change. */
  lazy val path = Option(System.getProperty("inlet.passwords")).map(Paths.get(_))
}

/** Users by a file that `inlet password` writes: name:rounds:salt:hash a line, in hex, PBKDF2 with SHA-256. It is read
  * at each login, so a line counts from the moment it is there until it is gone.
  */
class PasswordFile extends PasswdAuthenticationProvider {
  private val nobody = Array("", "200000", "00", "00") // takes as long as somebody

  def Authenticate(user: String, password: String): Unit = {
    val lines = Files.readAllLines(PasswordFile.path.get, UTF_8).asScala
    val entry = lines.map(_.split(':')).find(line => line.length == 4 && line(0) == user && user != "")
    val Array(_, rounds, salt, hash) = entry.getOrElse(nobody)
    val bytes = HexFormat.of().parseHex(hash)
    val spec = new PBEKeySpec(password.toCharArray, HexFormat.of().parseHex(salt), rounds.toInt, 256)
    val made = SecretKeyFactory.getInstance("PBKDF2WithHmacSHA256").generateSecret(spec).getEncoded
    if (!MessageDigest.isEqual(made, bytes) || entry.isEmpty)
      throw new AuthenticationException("Inlet: unknown user or wrong password")
  }
}
