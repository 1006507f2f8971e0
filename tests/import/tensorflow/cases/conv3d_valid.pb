
?
x0Placeholder*
dtype0*
shape:
î
Conv3D/filterConst*
dtype0*È
value¾B»" éV¿ Ð=?è(¿+TV?ÿÞ½¼÷Ùd>%?Rá=ˆÐ¾ã¿©V¿±)ô>¾eð½ò.¿‡B?áUç¾¥/¾lÐÐ¾úàƒ>‚#>®§L>Íï¾N{Ü¾`Sü¾“°¾06¿Ë4+¿Mˆm?Ö¢k?ˆ¿Žs¿D¿Î£Ì>‰?Bt¿´>Â(¿×€ý<w&>Ã£x?¯ö¾ßà?ö¯=?£rX?ÇÝ~¿†óy½ƒv?öN¾‹¡ ?+I¾=c­
?§ãö¼Jq¿è²S¿‡ïF¿š¹þ¾a	n?®í†>I!"?ÿU>ÑšŠ>¬±?%vZ?ÑCS?—M&?©ÄO¿SIŽ¾ÃÑm¿@â½= ?œÐe¿ñf¿
†
Conv3DConv3Dx0Conv3D/filter*
	dilations	
*
data_formatNDHWC*
paddingVALID*
T0*
strides	

%
IdentityIdentityConv3D*
T0