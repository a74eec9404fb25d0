import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.Charset;
import java.nio.charset.CharsetDecoder;

/** Prints each pair of bytes that the named charset reads as one code point, in hex: `B0A1 4E9C`. Run by jef_table.py. */
public class JefTable {
    public static void main(String[] arguments) {
        CharsetDecoder decoder = Charset.forName(arguments[0]).newDecoder(); // reports what it cannot read
        StringBuilder lines = new StringBuilder();
        for (int pair = 0; pair < 65536; pair++) {
            try {
                byte[] bytes = {(byte) (pair >> 8), (byte) pair};
                String text = decoder.decode(ByteBuffer.wrap(bytes)).toString();
                if (text.codePointCount(0, text.length()) == 1 && text.codePointAt(0) != 0xFFFD) {
                    lines.append(String.format("%04X %04X%n", pair, text.codePointAt(0)));
                }
            } catch (CharacterCodingException notOfTheSet) {
                continue;
            }
        }
        System.out.print(lines);
    }
}
